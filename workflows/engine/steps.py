"""The kinds of steps (engine semantics 3, and three of 1.2)."""

from __future__ import annotations

from typing import assert_never

from workflows.engine import asking, condition10, deciding, evaluating, gates, references, storing, tools
from workflows.engine.effects import Pause
from workflows.engine.values import Json
from workflows.engine.walk import Advance, Done, Place, StepFailed, Walk
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
from workflows.spec.patterns import ASK_A_PERSON, EXECUTE_TOOL


def perform(walk: Walk, place: Place, step: Step) -> Advance[Done]:
    """What the step produced; StepFailed or StepRejected when it did not come to that."""
    match step:
        case ActionStep():
            return (yield from asking.ask(walk, place, step))
        case ConditionStep():
            return (yield from _condition(walk, place, step))
        case ToolStep():
            return Done(output=(yield from tools.run_tool(walk, place, step.tool)))
        case ApprovalStep():
            return (yield from _approval(walk, place, step))
        case OnceStep() | OpenStep() | CloseStep():
            return (yield from storing.keep(walk, place, step))
        case _:
            assert_never(step)


def _condition(walk: Walk, place: Place, step: ConditionStep) -> Advance[Done]:
    branch = step.then if (yield from _holds(walk, place, step.if_)) else step.else_
    if branch == ASK_A_PERSON:
        reason = f'Step "{place.step}" asks a person before the run goes on.'
        pause = gates.plain_pause(walk, place, kind="guardrail", reason=reason, policy=step.policy)
        decision = yield from deciding.pass_gate(walk, place, pause, tools.call_inside)
        output = deciding.output_of(decision)
        # An approval's reason is not kept here (engine semantics 3).
        return Done(output={key: value for key, value in output.items() if key != "reason" or not decision.approved})
    tool = EXECUTE_TOOL.fullmatch(branch)
    if tool is None:
        raise StepFailed(
            f'Step "{place.step}": the branch "{branch}" is not an action: use execute_tool(NAME), or {ASK_A_PERSON}.'
        )
    return Done(output=(yield from tools.run_tool(walk, place, tool[1])))


def _holds(walk: Walk, place: Place, expression: str) -> Advance[bool]:
    if not walk.spec.is_1_0:
        return (yield from evaluating.condition(walk, place, expression))
    try:
        return condition10.evaluate(expression, walk.outputs)
    except condition10.ConditionError as problem:
        raise StepFailed(f'Step "{place.step}": {problem}') from problem


def _approval(walk: Walk, place: Place, step: ApprovalStep) -> Advance[Done]:
    message = step.message or ""
    if walk.spec.is_1_0:
        message = references.fill10(message, walk.outputs, walk.situation.input)
    else:
        message = yield from evaluating.plain_text(walk, place, message)
    reason = message or f'Step "{place.step}" waits for an approval.'
    pause = gates.plain_pause(walk, place, kind="approval", reason=reason, policy=step.policy)
    if step.policy.mode == "record":
        return Done(output=(yield from _recorded(walk, place, pause)))
    return Done(output=deciding.output_of((yield from deciding.pass_gate(walk, place, pause, tools.call_inside))))


def _recorded(walk: Walk, place: Place, pause: Pause) -> Advance[dict[str, Json]]:
    """What an approval leaves that nobody waits for (spec 1.2, `mode: record`)."""
    pause = yield from deciding.opened(walk, place, pause, tools.call_inside)
    key = yield from gates.recorded(pause)
    return {"recorded": True} if key is None else {"recorded": True, "key": key}
