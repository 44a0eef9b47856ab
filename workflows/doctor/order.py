"""Which steps read the output of a step that has not run by then (format 12: loading does not look at the order)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from workflows.doctor.findings import Check, Patient, warned
from workflows.engine.values import Json
from workflows.spec import spans
from workflows.spec.expressions import examine
from workflows.spec.model import (
    ActionStep,
    ApprovalStep,
    CloseStep,
    ConditionStep,
    OnceStep,
    OpenStep,
    Step,
    ToolStep,
)
from workflows.spec.patterns import EXECUTE_TOOL

#: The parts of a tool that are no templates, and of which none is looked at here.
_PLAIN: Final = frozenset({"name", "token", "extract", "requires_approval", "method", "use", "op", "config", "secrets"})


def too_early(patient: Patient) -> Iterator[Check]:
    """A warning for each: an expression yields nothing of such a step, which fails most of them and not all.

    Of 1.0 specs the notes tell it, at load.
    """
    if patient.spec.is_1_0:
        return
    steps = patient.spec.agent.workflow
    first: dict[str, int] = {}
    for at, step in enumerate(steps):
        first.setdefault(step.step, at)
    of_tools: dict[str, tuple[str, ...]] = {}
    for at, step in enumerate(steps):
        read = [name for source in _own(step) for name in _roots(source)]
        for tool in _called(step):
            if tool not in of_tools:
                of_tools[tool] = _of_tool(patient, tool)
            read += of_tools[tool]
        for name in dict.fromkeys(name for name in read if first.get(name, -1) >= at):
            when = "which is itself" if first[name] == at else "which runs later"
            yield warned("workflow", f'step "{step.step}" reads the output of "{name}", {when}: there is none by then')


def _roots(source: str) -> Iterator[str]:
    for path in examine(source).names:
        yield path[0]


def _own(step: Step) -> Iterator[str]:
    match step:
        case ConditionStep():
            yield step.if_
        case ActionStep():
            yield from _in(step.query)
        case ApprovalStep():
            yield from _in(step.message)
        case OnceStep() | CloseStep():
            yield from _in(step.key)
        case OpenStep():
            yield from _in([step.key, step.value])


def _called(step: Step) -> Iterator[str]:
    match step:
        case ToolStep():
            yield step.tool
        case ConditionStep():
            for branch in (step.then, step.else_):
                if called := EXECUTE_TOOL.fullmatch(branch):
                    yield called[1]


def _of_tool(patient: Patient, name: str) -> tuple[str, ...]:
    """The names that a tool's expressions read, each once."""
    tool = patient.by_name.get(name)
    if tool is None:
        return ()
    parts = {key: value for key, value in tool.model_dump().items() if key not in _PLAIN}
    return tuple(dict.fromkeys(root for source in dict.fromkeys(_in(parts)) for root in _roots(source)))


def _in(value: Json) -> Iterator[str]:
    """The expressions of every text in a tree."""
    if isinstance(value, str):
        yield from (part.source for part in spans.parse(value) if isinstance(part, spans.Span))
    elif isinstance(value, dict):
        for item in value.values():
            yield from _in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _in(item)
