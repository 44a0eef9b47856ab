"""Judging the answer to an HTTP tool's request: output, or failure without secrets (engine semantics 14.3 to 14.5)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Literal, TypeAlias

from workflows.engine import jsontext, paths
from workflows.engine.effects import HttpCall, ToolFailed, ToolOutput
from workflows.engine.redact import redact
from workflows.engine.values import NOTHING, Json

Failure: TypeAlias = Literal["rate_limit", "auth", "timeout", "http", "failure_when", "build"]
#: Searches an ECMAScript pattern (first) in a text (second); raises PatternUndecided when it could not.
Matches: TypeAlias = Callable[[str, str], bool]

#: Reasons come from outside; a longer one is cut, after its secrets were hidden.
REASON_LIMIT = 4000


class PatternUndecided(Exception):
    """A `matches` pattern was refused or took too long. The call fails: an unread rule is not a rule that is quiet."""


def judge(call: HttpCall, status: int, status_text: str, body: bytes, matches: Matches) -> ToolOutput | ToolFailed:
    """What this answer makes of the step: the status first, then the body, the failure rules, `extract`."""
    if not 200 <= status <= 299:
        return _refused(call, status, status_text)
    if call.mode == "bytes":
        return ToolOutput(value=base64.b64encode(body).decode("ascii"))
    text = body.decode("utf-8-sig", errors="replace")
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


def no_answer(call: HttpCall, message: str) -> ToolFailed:
    """The failure of a call that got no answer at all; `message` is the transport's and may quote the request."""
    return failed(call, f"got no answer: {message}", failure="http", retryable=True)


def failed(call: HttpCall, what: str, *, failure: Failure, retryable: bool = False) -> ToolFailed:
    """A failure that names the tool and the URL, then says `what`, with every secret of the request hidden."""
    error = redact(f'Tool "{call.tool}": {call.method} {call.url} {what}', call.secrets)
    return ToolFailed(error=error, failure=failure, retryable=retryable)


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
    why = "is empty" if not text.strip() else f"is not JSON ({problem})"
    advice = "A tool whose answers are not JSON needs `response: {mode: text}`."
    return failed(call, f"was answered with a body that {why}. {advice}", failure="http")


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
            shown = redact(reason, call.secrets)
            cut = shown if len(shown) <= REASON_LIMIT else shown[:REASON_LIMIT] + "..."
            return failed(call, f"failed: {cut}", failure="failure_when", retryable=bool(rule.get("retryable", False)))
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
