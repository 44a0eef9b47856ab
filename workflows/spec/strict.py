"""Version 1.2's shapes: those of 1.1 with every mapping closed, and the keys that 1.2 adds (spec 1.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workflows.spec import agent_shapes, step_shapes, texts, tool_shapes
from workflows.spec.durations import duration
from workflows.spec.errors import Path
from workflows.spec.model import Json
from workflows.spec.policy_shapes import POLICY, POLICY_KEYS
from workflows.spec.shapes import Anything, Boolean, Faults, ListOf, MapOf, Record, Shape, Word
from workflows.spec.step_shapes import Literal, Steps, kind
from workflows.spec.trigger_shapes import trigger


def closed(shape: Shape) -> Shape:
    """The same shape, refusing every key that it does not know, at any depth."""
    match shape:
        case Record():
            return closed_record(shape)
        case ListOf():
            return replace(shape, item=closed(shape.item))
        case MapOf():
            return replace(shape, value=closed(shape.value))
        case _:
            return shape


def closed_record(record: Record, **more: Shape) -> Record:
    """A record closed at any depth, with more optional keys."""
    return replace(record, keys={**{key: closed(shape) for key, shape in record.keys.items()}, **more}, closed=True)


# Tools -------------------------------------------------------------------------------------------------------


def _approval_is_one(tool: dict[str, Any], path: Path, faults: Faults) -> None:
    if "approval" in tool and tool.get("requires_approval") is False:
        faults.soft(
            (*path, "requires_approval"),
            '"approval" says how the tool\'s calls are approved, so "requires_approval" cannot be false beside it',
        )


TOOLS: dict[str, Record] = {
    action: replace(
        closed_record(record, action=Literal(word=action), approval=POLICY), rules=(*record.rules, _approval_is_one)
    )
    for action, record in tool_shapes.TOOLS.items()
}


def tool(value: Json, path: Path, faults: Faults) -> Json:
    """A tool of the kind that its `action` names."""
    return tool_shapes.tool_of(TOOLS, value, path, faults)


# Steps -------------------------------------------------------------------------------------------------------

_TEXT = texts.NON_EMPTY
ONCE = closed_record(
    kind("once step", "once", {"key": _TEXT, "ttl": duration}),
    on_repeat=Word(words=("stop", "continue")),
    release_on_failure=Boolean(),
)
OPEN = closed_record(kind("open step", "open", {"key": _TEXT}), value=Anything(), ttl=duration)
CLOSE = closed_record(kind("close step", "close", {"key": _TEXT}))
STEPS = Steps(
    typed={
        "condition": closed_record(step_shapes.CONDITION, **POLICY_KEYS),
        "tool": closed_record(step_shapes.TOOL),
        "approval": closed_record(step_shapes.APPROVAL, **POLICY_KEYS),
        "once": ONCE,
        "open": OPEN,
        "close": CLOSE,
    },
    # `type: action` says what the step is anyway; in 1.1 it is a key that nobody reads.
    action=closed_record(step_shapes.ACTION, type=Literal(word="action")),
)


# The whole file ----------------------------------------------------------------------------------------------

_AGENT = closed_record(agent_shapes.agent(tool, STEPS), trigger=trigger, approvals=POLICY)
DOCUMENT = closed_record(agent_shapes.document(_AGENT))
