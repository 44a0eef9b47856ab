"""The components that Kampong has, and why a component tool cannot run (engine semantics 13, 15.3; format 18.1).

There are two, and both are the connectors in another dress. Everything that can be wrong with a component tool stands
in the file, so it is known before a run starts and always before a person is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from workflows.spec.errors import clipped, listed
from workflows.spec.model import ComponentTool

Effect: TypeAlias = Literal["read", "write", "destructive"]


@dataclass(frozen=True, kw_only=True)
class Op:
    """What a component can do. Every input is a text and is required; `action` is the tool that does the same."""

    action: Literal["slack_post_message", "gmail_send"]
    inputs: tuple[str, ...]
    effect: Effect


@dataclass(frozen=True, kw_only=True)
class Component:
    """`slots` are its secrets, each required; none of ours has a config."""

    ops: Mapping[str, Op]
    slots: tuple[str, ...]


CATALOGUE: Final[Mapping[str, Component]] = {
    "kampong/gmail@1.0.0": Component(
        ops={"send": Op(action="gmail_send", inputs=("to", "subject", "body"), effect="write")}, slots=("token",)
    ),
    "kampong/slack@1.0.0": Component(
        ops={"post_message": Op(action="slack_post_message", inputs=("channel", "text"), effect="write")},
        slots=("token",),
    ),
}


def op_of(tool: ComponentTool) -> Op:
    """The operation of a tool that has no `problem`."""
    return CATALOGUE[tool.use].ops[tool.op]


def needs_approval(tool: ComponentTool) -> bool:
    """What the file says; where it says nothing, a destructive operation asks (engine semantics 13)."""
    if tool.requires_approval is not None:
        return tool.requires_approval
    return op_of(tool).effect == "destructive"


def problem(tool: ComponentTool) -> str | None:
    """Why this tool can never run, with the tool, its component and what there is; None when it can."""
    component = CATALOGUE.get(tool.use)
    if component is None:
        there = " and ".join(f"{use} ({', '.join(one.ops)})" for use, one in CATALOGUE.items())
        return f'Tool "{tool.name}": there is no component {tool.use} here. This version of Kampong has {there}.'
    op = component.ops.get(tool.op)
    if op is None:
        there = _quoted(component.ops)
        return f'Tool "{tool.name}": the component {tool.use} has no op "{clipped(tool.op)}". It has {there}.'
    faults = "; ".join(_faults(tool, component, op))
    return f'Tool "{tool.name}": {tool.use} cannot {tool.op} like this: {faults}.' if faults else None


def _faults(tool: ComponentTool, component: Component, op: Op) -> Iterator[str]:
    """Everything that is wrong with what a known operation is given."""
    inputs, slots = _quoted(op.inputs), _quoted(component.slots)
    for name in op.inputs:
        # Written without a value, it says as little as when it is left out.
        if tool.with_.get(name) is None or tool.with_[name] == "":
            yield f'"with" needs "{name}" (the inputs are {inputs})'
    # Unknown names are told together: a file can hold any number of them.
    if strangers := _others(tool.with_, op.inputs):
        yield f'"with" holds {listed(strangers)}, and the only inputs are {inputs}'
    for name in _others(component.slots, tool.secrets):
        yield f'"secrets" needs "{name}", a reference such as ${{NAME}} to the variable that holds it'
    if strangers := _others(tool.secrets, component.slots):
        yield f'"secrets" holds {listed(strangers)}, and the only slot is {slots}'
    if tool.config:
        yield f'"config" holds {listed(tool.config)}, and this component has no settings'


def _others(names: Iterable[str], known: Iterable[str]) -> list[str]:
    return [name for name in names if name not in known]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
