"""What an answer makes of a step: output, or a failure without secrets (engine semantics 14.3 to 14.5)."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from workflows.engine import jsontext, paths
from workflows.engine.effects import HttpCall, ToolFailed, ToolOutput
from workflows.engine.judging import PatternUndecided, judge, no_answer
from workflows.engine.redact import MARK, redact
from workflows.engine.values import NOTHING

SECRET = 'p/w "ä"+~*x'


def call(**changed: Any) -> HttpCall:
    fields: dict[str, Any] = {
        "tool": "fetch_it",
        "method": "GET",
        "url": "http://t.test/x",
        "headers": (),
        "body": None,
        **changed,
    }
    return HttpCall(**fields)


def matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def answered(value: Any, *, status: int = 200, text: str = "OK", **changed: Any) -> ToolOutput | ToolFailed:
    body = value if isinstance(value, bytes) else jsontext.dumps(value).encode()
    return judge(call(**changed), status, text, body, matches)


def failure(value: Any, **changed: Any) -> ToolFailed:
    outcome = answered(value, **changed)
    assert isinstance(outcome, ToolFailed)
    assert "fetch_it" in outcome.error
    assert "http://t.test/x" in outcome.error
    return outcome


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (429, "rate_limit", True),
        (401, "auth", False),
        (403, "auth", False),
        (408, "timeout", True),
        (500, "http", True),
        (503, "http", True),
        (404, "http", False),
        (302, "http", False),
        (199, "http", False),
    ],
)
@pytest.mark.parametrize("mode", ["json", "text", "bytes"])
def test_a_status_outside_2xx_fails_with_its_class_in_every_mode(
    status: int, kind: str, retryable: bool, mode: str
) -> None:
    failed = failure({"ok": True}, status=status, text="Why Not", mode=mode)
    assert (failed.failure, failed.retryable) == (kind, retryable)
    assert f"{status} Why Not" in failed.error


def test_each_mode_reads_the_body_its_way() -> None:
    assert answered("\ufeff[1, 2.0]".encode()) == ToolOutput(value=[1, 2.0])
    assert answered("grün".encode(), mode="text") == ToolOutput(value="grün")
    assert answered(b"\x00\xff", mode="bytes") == ToolOutput(value=base64.b64encode(b"\x00\xff").decode())
    assert answered(b"a\xffb", mode="text") == ToolOutput(value="a\ufffdb")


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"gr\xfcn", "text/plain; charset=ISO-8859-1", "grün"),
        (b"gr\xfcn", 'text/plain; x=y; Charset = "windows-1252" ; z=1', "grün"),
        ("grün".encode("utf-16-be"), "text/plain; charset=utf-16be", "grün"),
        (b"\xef\xbb\xbfgr\xc3\xbcn", "text/plain; charset=iso-8859-1", "grün"),
        ("grün".encode("utf-16"), "text/plain", "grün"),
        ("grün".encode(), "text/plain; charset=made-up", "grün"),
        ("grün".encode(), "text/plain; charset=", "grün"),
        (b"abc", "text/plain; charset=rot13", "abc"),
        (b"\\u0041", "text/plain; charset=unicode_escape", "\\u0041"),
        (b"gr\xfcn", "text/plain", "gr\ufffdn"),
    ],
)
def test_a_text_is_read_in_the_charset_that_the_server_names(body: bytes, content_type: str, text: str) -> None:
    assert judge(call(mode="text"), 200, "OK", body, matches, content_type=content_type) == ToolOutput(value=text)


@pytest.mark.parametrize("body", ['"grün"'.encode(), '"grün"'.encode("latin-1"), '"grün"'.encode("utf-8-sig")])
def test_json_is_utf_8_whatever_the_server_says_unless_it_cannot_be(body: bytes) -> None:
    outcome = judge(call(), 200, "OK", body, matches, content_type="application/json; charset=iso-8859-1")
    assert outcome == ToolOutput(value="grün")


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"NaN", b"1" * 5000])
def test_a_body_that_is_no_json_names_tool_and_url_and_is_not_retried(body: bytes) -> None:
    failed = failure(body)
    assert failed.retryable is False
    assert "mode: text" in failed.error


@pytest.mark.parametrize("body", [b'{"a": "\\u0000"}', b'["\\ud800"]', b"1e400", b"[" * 5000])
def test_json_that_cannot_be_kept_is_told_apart_from_what_is_none(body: bytes) -> None:
    error = failure(body).error
    assert "cannot be kept" in error
    assert "mode: text" not in error
    assert len(error) < 200


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b", None),
        ("items.0.id", 7),
        ("items.1", NOTHING),
        ("items.00.id", NOTHING),
        ("items.-1", NOTHING),
        ("a.nope.deeper", NOTHING),
        ("items[0].id", NOTHING),
        ("text.0", NOTHING),
        ("a b", 1),
        ("", {"a": {"b": None}, "items": [{"id": 7}], "text": "xy", "a b": 1}),
    ],
)
def test_extract_walks_dotted_keys_and_positions(path: str, value: Any) -> None:
    body = {"a": {"b": None}, "items": [{"id": 7}], "text": "xy", "a b": 1}
    assert answered(body, extract=path) == ToolOutput(value=value)


# Failure rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "body", "fires"),
    [
        ({"exists": True}, {"e": 0}, True),
        ({"exists": True}, {"e": None}, False),
        ({"exists": False}, {"e": None}, True),
        ({"exists": False}, {}, True),
        ({"exists": False}, {"e": False}, False),
        ({"equals": False}, {"e": False}, True),
        ({"equals": False}, {"e": 0}, False),
        ({"equals": 3}, {"e": 3.0}, True),
        ({"equals": None}, {"e": None}, True),
        ({"equals": None}, {}, False),
        ({"matches": "^li"}, {"e": "limit"}, True),
        ({"matches": "^li"}, {"e": ["limit"]}, False),
        ({"matches": "mi"}, {}, False),
    ],
)
def test_a_rule_fires_on_its_one_test(rule: dict[str, Any], body: Any, fires: bool) -> None:
    outcome = answered(body, failure_when=({"path": "e", **rule},))
    assert isinstance(outcome, ToolFailed) is fires


def test_the_first_rule_that_fires_counts_and_says_whether_to_retry() -> None:
    rules = (
        {"path": "no", "exists": True, "message_path": "no"},
        {"path": "ok", "equals": False, "message_path": "error", "retryable": True},
        {"path": "ok", "exists": True},
    )
    failed = failure({"ok": False, "error": "channel_not_found"}, failure_when=rules)
    assert (failed.failure, failed.retryable) == ("failure_when", True)
    assert "channel_not_found" in failed.error


@pytest.mark.parametrize(
    ("found", "words"), [({"code": 7}, '{"code":7}'), (None, "ok equals false"), ("too late", "too late")]
)
def test_the_reason_is_text_json_or_the_rule_itself(found: Any, words: str) -> None:
    rules = ({"path": "ok", "equals": False, "message_path": "why"},)
    assert words in failure({"ok": False, "why": found}, failure_when=rules).error


def test_rules_look_at_the_whole_json_body_and_at_nothing_else() -> None:
    rules = ({"path": '["Error Message"]', "exists": True},)
    assert isinstance(answered({"Error Message": "x", "data": 1}, failure_when=rules, extract="data"), ToolFailed)
    assert answered(b'{"Error Message": 1}', failure_when=rules, mode="text") == ToolOutput(
        value='{"Error Message": 1}'
    )


def test_a_pattern_that_cannot_be_decided_fails_the_call() -> None:
    def undecided(pattern: str, text: str) -> bool:
        raise PatternUndecided("it took too long")

    outcome = judge(call(failure_when=({"path": "a", "matches": "(a+)+$"},)), 200, "OK", b'{"a": "x"}', undecided)
    assert isinstance(outcome, ToolFailed)
    assert "it took too long" in outcome.error


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b-c.$d.0", 1),
        ("rows[1].id", 2),
        ("rows[01].id", 2),
        ('["x.y \\"z\\""]["k"]', 3),
        ("rows[9].id", NOTHING),
        ("rows[" + "9" * 6000 + "]", NOTHING),
    ],
)
def test_a_failure_path_knows_quoted_keys_and_positions(path: str, value: Any) -> None:
    body = {"a": {"b-c": {"$d": [1]}}, "rows": [{}, {"id": 2}], 'x.y "z"': {"k": 3}}
    assert paths.follow(body, path) == value


@pytest.mark.parametrize("path", ["", "a b", ".a", "a.", "a..b", "a[-1]", 'a.["k"]', '["k"]x', "a\n", "*"])
def test_a_text_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        paths.follow({}, path)


# Secrets ------------------------------------------------------------------------------------------------------

SPELLINGS = {
    "as it is": SECRET,
    "percent-encoded": quote(SECRET, safe=""),
    "a URI component": quote(SECRET, safe="!'()*"),
    "in lower-case hex": quote(SECRET, safe="").lower(),
    "form-encoded": quote_plus(SECRET),
    "as browsers encode forms": quote_plus(SECRET, safe="*").replace("~", "%7E"),
    "JSON-escaped": SECRET.replace('"', '\\"'),
    "JSON-escaped in ASCII": SECRET.replace('"', '\\"').replace("ä", "\\u00e4"),
    "JSON-escaped with its slashes": SECRET.replace('"', '\\"').replace("ä", "\\u00E4").replace("/", "\\/"),
    "a path": quote(SECRET),
    "JSON in JSON": jsontext.dumps(jsontext.dumps(SECRET)[1:-1])[1:-1],
    "percent-encoded twice": quote(quote(quote(SECRET, safe=""), safe=""), safe=""),
    "some characters and not others": quote(SECRET, safe="/+ ").replace("%22", '"', 1),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_hidden_in_every_spelling(spelling: str) -> None:
    assert redact(f"a {SPELLINGS[spelling]} b", {SECRET}) == f"a {MARK} b"


@pytest.mark.parametrize("secret", ["\\", 'a\\"b', "\\\\n", "a\n\tb", "%", "%25", "100%\\", "\U0001f600 x", "C:\\\\x"])
def test_a_secret_of_characters_that_escapes_are_made_of_is_hidden(secret: str) -> None:
    once = jsontext.dumps(secret)[1:-1]
    for spelling in (secret, once, jsontext.dumps(once)[1:-1], quote(secret), quote_plus(secret)):
        assert redact(f"a {spelling} b", {secret}) == f"a {MARK} b", spelling


def test_the_longest_secret_wins_and_no_rest_of_one_shows() -> None:
    assert redact("key=abcdef", {"abc", "abcdef"}) == f"key={MARK}"
    assert redact("key=abcdefg.", {"abcd", "cdefg"}) == f"key={MARK}."
    assert redact("abab", {"ab"}) == MARK + MARK
    assert redact("nothing here", {"", "zzz"}) == "nothing here"


def test_every_failure_hides_the_secrets_of_its_request() -> None:
    url = f"http://t.test/x?k={quote_plus(SECRET)}"
    rules = ({"path": "e", "exists": True, "message_path": "e"},)
    secretive: dict[str, Any] = {"url": url, "secrets": frozenset({SECRET}), "failure_when": rules}
    for failed in (
        answered({}, status=500, text=f"no {SECRET}", **secretive),
        answered({"e": f"bad key {SECRET}"}, **secretive),
        answered({"e": {"key": SECRET}}, **secretive),
        answered(b"<html>", **secretive),
        no_answer(call(**secretive), f"cannot connect to {url}"),
    ):
        assert isinstance(failed, ToolFailed)
        assert MARK in failed.error
        assert not [spelling for spelling in SPELLINGS.values() if spelling in failed.error]


def test_a_call_without_an_answer_may_be_tried_again() -> None:
    failed = no_answer(call(), "connection refused")
    assert (failed.failure, failed.retryable) == ("http", True)
    assert all(word in failed.error for word in ("fetch_it", "http://t.test/x", "connection refused"))


def test_a_long_reason_is_cut_after_its_secrets_were_hidden() -> None:
    reason = "x" * 3995 + SECRET + "y" * 1000
    rules = ({"path": "e", "exists": True, "message_path": "e"},)
    failed = failure({"e": reason}, failure_when=rules, secrets=frozenset({SECRET}))
    assert len(failed.error) < 4200
    assert SECRET[:4] not in failed.error
    for repeated in (SECRET * 20_000, f"{SECRET}, " * 6_000, "x" * 70_000 + SECRET):
        failed = failure({"e": repeated}, failure_when=rules, secrets=frozenset({SECRET}))
        assert SECRET[:4] not in failed.error
        assert len(failed.error) < 4200
