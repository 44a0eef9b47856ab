"""Building a request from a rendered tool (engine semantics 14.1 and 14.2)."""

from __future__ import annotations

from typing import Any

import pytest

from workflows.engine.effects import HttpCall
from workflows.engine.httpcall import BuildFailed, RenderedBody, RenderedRequest, build
from workflows.engine.references import author
from workflows.engine.render11 import Data

SECRET = "s3cr3t/ä &"


def request(url: str = "https://t.test/x", **changed: Any) -> RenderedRequest:
    fields: dict[str, Any] = {
        "tool": "send",
        "method": "POST",
        "headers": {},
        "query": {},
        "body": None,
        "mode": "json",
        "extract": None,
        "failure_when": (),
        "retry": None,
        "pace": None,
        **changed,
    }
    for name in ("headers", "query"):
        fields[name] = {key: author(text) for key, text in fields[name].items()}
    return RenderedRequest(url=author(url), **fields)


def built(url: str = "https://t.test/x", *, env: dict[str, str] | None = None, **changed: Any) -> HttpCall:
    return build(request(url, **changed), env or {}, approved=False)


@pytest.mark.parametrize(
    ("url", "query", "expected"),
    [
        ("https://t.test/x", {"symbol": "IBM", "q": "a b&c=d"}, "https://t.test/x?symbol=IBM&q=a+b%26c%3Dd"),
        ("https://t.test/x?", {"q": "1"}, "https://t.test/x?q=1"),
        ("https://t.test/x?a=1", {"q": "1"}, "https://t.test/x?a=1&q=1"),
        ("https://t.test/x?a=1&", {"q": "1"}, "https://t.test/x?a=1&q=1"),
        ("https://t.test/x#part?no", {"q": "1"}, "https://t.test/x?q=1#part?no"),
        ("https://t.test", {"q": "é~*"}, "https://t.test?q=%C3%A9%7E*"),
        ("https://t.test/x", {"leer": ""}, "https://t.test/x?leer="),
        ("not a url {x}", {}, "not a url {x}"),
    ],
)
def test_query_parameters_are_appended_in_order_and_encoded(url: str, query: dict[str, str], expected: str) -> None:
    assert built(url, query=query).url == expected


@pytest.mark.parametrize("url", ["/x", "t.test/x", "https://", "${BASE}"])
def test_query_parameters_need_an_absolute_url_and_the_refusal_hides_secrets(url: str) -> None:
    with pytest.raises(BuildFailed) as failed:
        built(url, query={"q": "1"}, env={"BASE": SECRET})
    assert "send" in str(failed.value)
    assert SECRET not in str(failed.value)


def test_references_are_resolved_everywhere_and_every_value_is_a_secret() -> None:
    call = built(
        "https://t.test/${A}",
        headers={"X": "Bearer ${B}"},
        query={"k": "${C}"},
        body=RenderedBody(kind="json", content={"deep": [author("${D} $${E}")]}),
        env={"A": "a", "B": "b", "C": "c", "D": "d"},
    )
    assert call.url == "https://t.test/a?k=c"
    assert call.headers == (("X", "Bearer b"), ("Content-Type", "application/json"))
    assert call.body == b'{"deep":["d ${E}"]}'
    assert call.secrets == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("body", "content_type", "sent"),
    [
        (
            RenderedBody(kind="json", content={"n": Data(3.0), "t": author("ä")}),
            "application/json",
            '{"n":3,"t":"ä"}'.encode(),
        ),
        (
            RenderedBody(kind="form", content={"a": author("1 2"), "b": author("x&y")}),
            "application/x-www-form-urlencoded",
            b"a=1+2&b=x%26y",
        ),
        (RenderedBody(kind="raw", content=author("hällo")), "text/plain; charset=utf-8", "hällo".encode()),
        (RenderedBody(kind="raw", content=author(""), content_type="text/csv"), "text/csv", b""),
    ],
)
def test_each_encoding_has_its_content_type(body: RenderedBody, content_type: str, sent: bytes) -> None:
    call = built(body=body)
    assert call.headers == (("Content-Type", content_type),)
    assert call.body == sent


def test_an_own_content_type_is_kept_whatever_its_case() -> None:
    call = built(headers={"content-TYPE": "application/vnd.x+json"}, body=RenderedBody(kind="json", content=[]))
    assert call.headers == (("content-TYPE", "application/vnd.x+json"),)


def test_without_a_body_no_header_is_added() -> None:
    assert built().headers == ()


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00"])
def test_a_header_value_with_a_line_break_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(BuildFailed, match="header X-Note") as failed:
        built(headers={"X-Note": "${V}"}, env={"V": value})
    assert value not in str(failed.value)


def test_half_a_surrogate_pair_is_refused_with_a_reason() -> None:
    with pytest.raises(BuildFailed, match="surrogate"):
        built("https://t.test/\ud800")


def test_get_with_a_body_and_extract_without_json_are_refused() -> None:
    with pytest.raises(BuildFailed, match="GET"):
        built(method="GET", body=RenderedBody(kind="raw", content=author("x")))
    with pytest.raises(BuildFailed, match="extract"):
        built(mode="bytes", extract="a")


def test_the_call_holds_what_judging_and_retrying_need_and_shows_no_secret() -> None:
    rule = {"path": "a", "exists": True, "retryable": False}
    call = build(
        request("https://t.test/${A}", extract="a.b", failure_when=(rule,), retry={"max": 2}, pace={"rps": 1}),
        {"A": "s3cr3t"},
        approved=True,
    )
    assert (call.extract, call.failure_when, call.retry, call.pace) == ("a.b", (rule,), {"max": 2}, {"rps": 1})
    assert call.approved is True
    assert "s3cr3t" not in repr(call)


def test_what_is_shown_keeps_the_content_type_and_leaves_out_what_is_absent() -> None:
    body = RenderedBody(kind="raw", content=author("a,${B}"), content_type="text/csv")
    assert request(method="PUT", body=body, query={"q": "1"}).shown() == {
        "action": "http_request",
        "tool": "send",
        "method": "PUT",
        "url": "https://t.test/x",
        "query": {"q": "1"},
        "body": {"raw": "a,${B}", "content_type": "text/csv"},
    }


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("https://clerk:humming@t.test/x", "humming"),
        ("https://clerk:hum%40ing@t.test/x", "hum@ing"),
        ("https://clerk:a:b@t.test/x", "a:b"),
        ("clerk:humming@t.test/x", "humming"),
        ("https://clerk@t.test/x:y@z", None),
        ("https://t.test/a:b@c", None),
        ("https://t.test/?a:b@c", None),
    ],
)
def test_a_password_in_the_address_is_a_secret_of_the_request(url: str, password: str | None) -> None:
    secrets = built(url).secrets
    assert password in secrets if password else not secrets & {"b", "y"}
    with pytest.raises(BuildFailed) as refused:
        build(request("x:humming@", query={"a": "b"}), {}, approved=False)
    assert "humming" not in str(refused.value)
