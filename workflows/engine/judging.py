"""Judging the answer to an HTTP tool's request: output, or failure without secrets (engine semantics 14.3 to 14.5)."""

from __future__ import annotations

import base64
import codecs
import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from workflows.engine import jsontext, paths
from workflows.engine.effects import HttpCall, ToolFailed, ToolOutput
from workflows.engine.redact import MARK, redact
from workflows.engine.values import NOTHING, Json

Failure: TypeAlias = Literal["rate_limit", "auth", "timeout", "http", "failure_when", "build"]
#: Searches an ECMAScript pattern (first) in a text (second); raises PatternUndecided when it could not.
Matches: TypeAlias = Callable[[str, str], bool]

_NOT_JSON = "not JSON: "
#: Reasons, status texts and addresses may come from outside; a longer one is cut.
PART_LIMIT = 4000
_LOOKED_AT = 64 * 1024

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
#: Charsets of the web that Python knows by the same name: some of its others are no charsets, or slow.
_CHARSET = re.compile(
    r"""charset\s*=\s*"?
    (utf-8|utf-16(?:le|be)?|us-ascii|iso-8859-(?:[1-9]|1[0-1]|1[3-6])|latin1|windows-125[0-8]|windows-874
    |koi8-[ru]|macintosh|ibm866|gbk|gb2312|gb18030|big5|euc-jp|euc-kr|iso-2022-jp|shift[_-]jis)
    "?\s*(?:;|$)""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)


class PatternUndecided(Exception):
    """A `matches` pattern was refused or took too long. The call fails: an unread rule is not a rule that is quiet."""


def judge(
    call: HttpCall, status: int, status_text: str, body: bytes, matches: Matches, *, content_type: str = ""
) -> ToolOutput | ToolFailed:
    """What this answer makes of the step: the status first, then the body, the failure rules, `extract`."""
    if not 200 <= status <= 299:
        return _refused(call, status, status_text)
    if call.mode == "bytes":
        return ToolOutput(value=base64.b64encode(body).decode("ascii"))
    text = _text(body, content_type, is_json=call.mode == "json")
    if call.mode == "text":
        return ToolOutput(value=text)
    try:
        value = jsontext.loads(text)
    except ValueError as problem:
        return _unreadable(call, text, str(problem))
    failed = _first_rule_that_fires(call, value, matches)
    if failed is not None:
        return failed
    return ToolOutput(value=paths.extract(value, call.extract) if call.extract else value)


def _text(body: bytes, content_type: str, *, is_json: bool) -> str:
    """The body as text: by its byte order mark, by the charset that the server names, else as UTF-8.

    JSON is UTF-8 whatever the server says, unless it cannot be.
    """
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body.decode(encoding, errors="replace")
    named = _CHARSET.search(content_type)
    if named and not (is_json and _is_utf8(body)):
        return body.decode(named[1], errors="replace")
    return body.decode("utf-8", errors="replace")


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def no_answer(call: HttpCall, message: str) -> ToolFailed:
    """The failure of a call that got no answer at all; `message` is the transport's and may quote the request."""
    return failed(call, f"got no answer: {message}", failure="http", retryable=True)


def failed(call: HttpCall, what: str, *, failure: Failure, retryable: bool = False) -> ToolFailed:
    """A failure that names the tool and the URL, then says `what`, with every secret of the request hidden."""
    tool, url, said = (_shown(text, call.secrets) for text in (call.tool, call.url, what))
    return ToolFailed(error=f'Tool "{tool}": {call.method} {url} {said}', failure=failure, retryable=retryable)


def _shown(text: str, secrets: frozenset[str]) -> str:
    """A part of a message: cut after its secrets were hidden, for half a secret is a leak as well.

    Of a very long text only the beginning is looked at; where that may end in half a secret, nothing of it is shown.
    """
    hidden = redact(text[:_LOOKED_AT], secrets)
    longest_spelling = 24 * max(map(len, secrets), default=0)
    if len(text) > _LOOKED_AT and len(hidden) - longest_spelling <= PART_LIMIT:
        return MARK
    return hidden if len(hidden) <= PART_LIMIT else hidden[:PART_LIMIT] + "..."


def _refused(call: HttpCall, status: int, status_text: str) -> ToolFailed:
    failure, retryable = _class_of(status)
    answer = f"{status} {status_text}".strip()
    return failed(call, f"was answered with status {answer}.", failure=failure, retryable=retryable)


def _class_of(status: int) -> tuple[Failure, bool]:
    if status == 429:
        return "rate_limit", True
    if status in (401, 403):
        return "auth", False
    if status == 408:
        return "timeout", True
    return "http", status >= 500


def _unreadable(call: HttpCall, text: str, problem: str) -> ToolFailed:
    if text.strip() and not problem.startswith(_NOT_JSON):
        return failed(call, f"was answered with JSON that cannot be kept: {problem}.", failure="http")
    why = f"is not JSON ({problem.removeprefix(_NOT_JSON)})" if text.strip() else "is empty"
    # Only an HTTP tool can be told to expect another thing.
    advice = "" if call.service else " A tool whose answers are not JSON needs `response: {mode: text}`."
    return failed(call, f"was answered with a body that {why}.{advice}", failure="http")


# Failure rules -----------------------------------------------------------------------------------------------


def _first_rule_that_fires(call: HttpCall, value: Json, matches: Matches) -> ToolFailed | None:
    for rule in call.failure_when:
        try:
            fires = _fires(rule, value, matches)
            reason = _reason(rule, value) if fires else ""
        except (ValueError, PatternUndecided) as problem:
            return failed(
                call, f"was answered, but a failure rule cannot be applied: {problem}", failure="failure_when"
            )
        if fires:
            retryable = bool(rule.get("retryable", False))
            return failed(call, f"failed: {reason}", failure="failure_when", retryable=retryable)
    return None


def _fires(rule: Json, value: Json, matches: Matches) -> bool:
    found = paths.follow(value, rule["path"])
    if "exists" in rule:
        is_there = found is not NOTHING and found is not None
        return is_there is bool(rule["exists"])
    if "equals" in rule:
        return found is not NOTHING and jsontext.same(found, rule["equals"])
    return isinstance(found, str) and matches(rule["matches"], found)


def _reason(rule: Json, value: Json) -> str:
    if rule.get("message_path"):
        found = paths.follow(value, rule["message_path"])
        if found is not NOTHING and found is not None:
            return found if isinstance(found, str) else jsontext.dumps(found)
    if "exists" in rule:
        return f"{rule['path']} is {'there' if rule['exists'] else 'missing'}"
    if "equals" in rule:
        return f"{rule['path']} equals {jsontext.dumps(rule['equals'])}"
    return f"{rule['path']} matches {rule['matches']}"
