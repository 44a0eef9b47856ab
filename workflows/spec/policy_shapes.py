"""What a spec of version 1.2 may say about an approval: who, on what, by when (spec 1.2, Approvals)."""

from __future__ import annotations

import re
from typing import Any

from workflows.spec import output_schema, patterns, texts
from workflows.spec.durations import duration
from workflows.spec.errors import Path, clipped
from workflows.spec.model import Json
from workflows.spec.shapes import (
    Boolean,
    Faults,
    ListOf,
    Number,
    Record,
    Shape,
    Text,
    Word,
    kind_of,
    one_of,
    wrong_type,
)

EXECUTE = re.compile(r"execute_tool\(([A-Za-z0-9_]+)\)", re.ASCII)
ON_EXPIRE = ("expire", "reject", "fail")
_MAIL = re.compile(r"[^@\s]+@[^@\s]+", re.ASCII)


def executes(value: str) -> str | None:
    """The tool that `execute_tool(NAME)` names; None for any other text."""
    found = EXECUTE.fullmatch(value)
    return found[1] if found else None


def _is_execute(value: str, path: Path, faults: Faults) -> None:
    if executes(value) is None:
        faults.soft(path, f'"{path[-1]}" must be execute_tool(NAME), not "{clipped(value)}"')


def _on_expire(value: Json, path: Path, faults: Faults) -> Json:
    if not isinstance(value, str) or (value not in ON_EXPIRE and executes(value) is None):
        found = f'"{clipped(value)}"' if isinstance(value, str) else kind_of(value)
        faults.hard(path, f'"{path[-1]}" must be {one_of(ON_EXPIRE)}, or execute_tool(NAME), not {found}')
    return value


def _is_address(value: str, path: Path, faults: Faults) -> None:
    if not _MAIL.fullmatch(value):
        faults.soft(path, f'"{clipped(value)}" is not a mail address')


NAMES = ListOf(item=texts.NON_EMPTY, non_empty=True)
TOOL_CALL = Text(rules=(_is_execute,))
SLACK_CHANNEL = Record(
    name="Slack channel",
    keys={"type": Word(words=("slack",)), "token": texts.EnvPlaceholder(), "channel": texts.NON_EMPTY},
    required=frozenset({"type", "token", "channel"}),
    closed=True,
)
EMAIL_CHANNEL = Record(
    name="mail addresses",
    keys={"type": Word(words=("email",)), "to": ListOf(item=Text(rules=(_is_address,)), non_empty=True)},
    required=frozenset({"type", "to"}),
    closed=True,
)
_CHANNELS = {"slack": SLACK_CHANNEL, "email": EMAIL_CHANNEL}


def channel(value: Json, path: Path, faults: Faults) -> Json:
    """One way to tell people: a Slack channel, or mail addresses."""
    if not isinstance(value, dict):
        wrong_type("a mapping", value, path, faults)
        return value
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _CHANNELS:
        faults.hard((*path, "type"), f'"type" must be {one_of(_CHANNELS)}')
        return value
    return _CHANNELS[kind](value, path, faults)


def form(value: Json, path: Path, faults: Faults) -> Json:
    """The answers that a decision needs, in the subset of JSON Schema that `output_schema` has."""
    before = len(faults.found)
    output_schema.node(value, path, faults)
    if not faults.any_hard(before):
        output_schema.schema_rules(value, path, faults)
    return value


APPROVERS = Record(
    name="approvers",
    keys={
        "users": NAMES,
        "groups": NAMES,
        "quorum": Number(least=1, most=100, whole=True),
        "four_eyes": Boolean(),
        "delegate": Boolean(),
    },
    closed=True,
)
ESCALATE = Record(
    name="escalation", keys={"after": duration, "groups": NAMES}, required=frozenset({"after", "groups"}), closed=True
)
ON_DECISION = Record(
    name="tools called on a decision", keys={"approved": TOOL_CALL, "rejected": TOOL_CALL}, closed=True
)
AUTO = Record(
    name="automatic decision",
    keys={"approve_if": texts.NON_EMPTY, "reject_if": texts.NON_EMPTY, "check": TOOL_CALL},
    closed=True,
)
POLICY_KEYS: dict[str, Shape] = {
    "approvers": APPROVERS,
    "form": form,
    "editable": ListOf(item=texts.RESPONSE_PATH, non_empty=True),
    "require_reason": Word(words=("never", "reject", "always")),
    "expires_in": duration,
    "on_expire": _on_expire,
    "remind_every": duration,
    "escalate": ESCALATE,
    "on_decision": ON_DECISION,
    "on_reject": Word(words=("stop", "continue")),
    "mode": Word(words=("gate", "record")),
    "auto": AUTO,
    "recall": duration,
    "valid_for": duration,
    "digest": Word(words=("optional", "required")),
    "notify": ListOf(item=channel),
}
POLICY = Record(name="approval policy", keys=POLICY_KEYS, closed=True)


def policy_of(part: dict[str, Any]) -> dict[str, Json]:
    """The policy keys that an approval or condition step carries among its own."""
    return {key: value for key, value in part.items() if key in POLICY_KEYS}


def first_key(path: str) -> str | None:
    """The first key of an editable path: `action`, or a step's name; None where it begins with an index."""
    if path.startswith("["):
        quoted = re.match(r'\["((?:[^"\\]|\\.)*)"\]', path, re.DOTALL)
        return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL) if quoted else None
    return re.split(r"[.\[]", path, maxsplit=1)[0] if patterns.RESPONSE_PATH.fullmatch(path) else None
