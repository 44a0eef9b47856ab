"""A run as a generator: it yields facts and requests, is sent each request's outcome, and touches nothing itself.

The same generator is driven by the command line, a worker, a test with scripted outcomes, and a resume.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from workflows.engine import deciding, gates, keeping, steps, storing, tools, vars
from workflows.engine.effects import Decision, Effect, Pause, Phase, ReadEnvironment
from workflows.engine.events import Completed, EngineEvent, Expired, Failed, Rejected, StepCompleted, StepStarted
from workflows.engine.situation import Situation
from workflows.engine.values import NOTHING, Json
from workflows.engine.vars import VarsError
from workflows.engine.walk import Advance, ApprovalEnded, Place, StepFailed, StepRejected, Walk
from workflows.spec.model import ApprovalStep, Spec


def run(spec: Spec, situation: Situation) -> Generator[EngineEvent | Effect, Any, None]:
    """Everything the run does from `situation.position` on, to its end.

    The driver sends the outcome of each effect; it closes the generator when nobody answers an AskPerson now.
    """
    position = situation.position
    walk = Walk(spec=spec, situation=situation, outputs=dict(position.outputs), stored=situation.decision)
    yield from _replayed(walk)
    if (yield from _was_rejected(walk)):
        return
    if walk.stored is not None and walk.stored.on_expire is not None:
        yield from _nobody_decided(walk, walk.stored, walk.stored.on_expire)
        return
    try:
        walk.variables = yield from variables(walk)
    except VarsError as problem:
        yield Failed(error=str(problem))
        return
    if situation.purpose == "on_decision":
        yield from _only_called(walk)
        return
    index, phase = position.step_index, position.phase
    if walk.stored is not None and walk.stored.step_index < index:
        walk.granted = gates.granted(walk.stored, walk.steps[walk.stored.step_index].step)
    while True:
        try:
            went_through = yield from _steps(walk, index, phase)
        except ApprovalEnded:
            index, phase = _back_to_gate(walk)
            continue
        if went_through:
            names = {step.step for step in walk.steps}
            inner = tuple(name for name in walk.outputs if name not in names)
            yield Completed(output=_in_step_order(walk), inner=inner)
        return


def _steps(walk: Walk, index: int, phase: Phase) -> Advance[bool]:
    """Whether the run went through every step from here on, or to one that completes it."""
    if phase == "after":
        if not (yield from _entered_after(walk, walk.place(index))):
            return False
        index += 1
    for later in range(index, len(walk.steps)):
        if not (yield from _step(walk, walk.place(later))):
            return False
        if walk.ended:
            break
    return True


def _back_to_gate(walk: Walk) -> tuple[int, Phase]:
    """Where the approval was given that ended before anything was called: what came of it since is forgotten."""
    ended, walk.granted = walk.granted, None
    if ended is None:
        raise TypeError("an approval without an end cannot end")
    walk.stored = ended.decision
    index, phase = ended.decision.step_index, ended.decision.phase
    for step in walk.steps[index if phase == "before" else index + 1 :]:
        # What was done on the store is done: the step is not performed again.
        if not isinstance(step, storing.STEPS):
            walk.outputs.pop(step.step, None)
    return index, phase


def _nobody_decided(walk: Walk, stored: Decision, tool: str) -> Advance[None]:
    """Call what the policy calls then, and end as `expired`, whatever came of it (spec 1.2, `on_expire`).

    Nothing of the gate itself is filled or compared: nobody approved anything.
    """
    position = walk.situation.position
    place = walk.place(position.step_index)
    if position.phase == "before":
        yield StepStarted(step=place.step, index=place.index)
    error = gates.EXPIRED
    try:
        walk.variables = yield from variables(walk)
        yield from deciding.called_on(walk, place, stored, tool, tools.call_inside)
    except (VarsError, StepFailed) as problem:
        error = f"{error}; {problem}"
    yield Expired(step=place.step, error=error)


def _only_called(walk: Walk) -> Advance[None]:
    """Call what a recorded request calls on its decision; the steps are another run's (spec 1.2, `mode: record`)."""
    place = walk.place(walk.situation.position.step_index)
    step, decision = walk.steps[place.index], walk.stored
    yield StepStarted(step=place.step, index=place.index)
    tool = None
    if isinstance(step, ApprovalStep) and decision is not None:
        on_decision = step.policy.on_decision
        tool = on_decision.approved if decision.approved else on_decision.rejected
    if decision is None or tool is None:
        yield Failed(step=place.step, error=f'Step "{place.step}": nothing is called here on this decision.')
        return
    try:
        output = yield from deciding.called_on(walk, place, decision, tool, tools.call_inside)
    except StepFailed as problem:
        yield Failed(step=place.step, error=str(problem))
        return
    name = f"{place.step}.on_decision"
    given = {} if output is NOTHING else {name: output}
    yield Completed(output=given, inner=tuple(one for one in walk.outputs if one != name))


def _replayed(walk: Walk) -> Advance[None]:
    """Tell the watchers of a fresh run what the runs before it did."""
    position = walk.situation.position
    if not walk.situation.replay:
        return
    until = position.step_index + (1 if position.phase == "after" else 0)
    for index in range(position.step_index + 1):
        step = walk.steps[index].step
        names = (*deciding.kept_names(step), *([step] if index < until else []))
        for name in names:
            if name in walk.outputs:
                output, within = walk.outputs[name], name != step
                yield StepCompleted(step=name, index=index, output=output, replayed=True, within=within)


def _was_rejected(walk: Walk) -> Advance[bool]:
    """End the run if the stored decision for where it stands is a no: nothing is read or evaluated for that.

    A no after which the run goes on is taken by its gate.
    """
    position = walk.situation.position
    stored = walk.stored
    if stored is None or stored.approved or stored.goes_on or stored.step_index != position.step_index:
        return False
    if stored.on_expire is not None or walk.situation.purpose:
        return False
    place = walk.place(position.step_index)
    if position.phase == "before":
        yield StepStarted(step=place.step, index=place.index)
    yield Rejected(step=place.step, reason=stored.reason or gates.REJECTED)
    return True


def variables(walk: Walk) -> Advance[dict[str, Json]]:
    """The vars of a 1.1 spec, resolved again for every start: the digest catches what a change of them changes."""
    if walk.spec.is_1_0:
        return {}
    overrides = walk.situation.overrides
    names = vars.names_needed(walk.spec, overrides)
    env = (yield ReadEnvironment(names=names)) if names else {}
    return vars.resolve(walk.spec, overrides, env)


def _step(walk: Walk, place: Place) -> Advance[bool]:
    """Whether the run goes on after this step; its events say why when it does not."""
    if walk.begun != place.index:
        yield StepStarted(step=place.step, index=place.index)
    walk.begun = place.index
    try:
        done = yield from steps.perform(walk, place, walk.steps[place.index])
        # Every kind of step guards its own acts; this holds the rule for a kind that forgets to.
        gates.no_gate_here(walk, place)
        keeping.check_output(place.step, done.output)
        walk.outputs[place.step] = done.output
        yield StepCompleted(
            step=place.step,
            index=place.index,
            output=done.output,
            confidence=done.confidence,
            guarded=gates.is_guarded(walk, place, done.confidence),
            ends=done.ends,
        )
        yield from _guarded(walk, place, gates.guardrail(walk, place, done.confidence))
        walk.ended = done.ends
    except StepFailed as problem:
        yield Failed(step=place.step, error=str(problem))
        return False
    except StepRejected as rejection:
        yield Rejected(step=place.step, reason=str(rejection))
        return False
    return True


def _entered_after(walk: Walk, place: Place) -> Advance[bool]:
    """Whether the run may leave the completed step whose guardrail it waited at."""
    try:
        yield from _guarded(walk, place, gates.guardrail_again(walk, place))
    except StepFailed as problem:
        yield Failed(step=place.step, error=str(problem))
        return False
    except StepRejected as rejection:
        yield Rejected(step=place.step, reason=str(rejection))
        return False
    return True


def _guarded(walk: Walk, place: Place, pause: Pause | None) -> Advance[None]:
    """Ask for the completed step, if its guardrail says so.

    An answer that was rejected is not used by what comes next: the rejection takes its place (spec 1.2, `on_reject`).
    """
    if pause is None:
        return
    decision = yield from deciding.pass_gate(walk, place, pause, tools.call_inside)
    if not decision.approved:
        output = deciding.output_of(decision)
        walk.outputs[place.step] = output
        yield StepCompleted(step=place.step, index=place.index, output=output)


def _in_step_order(walk: Walk) -> dict[str, Json]:
    names = dict.fromkeys(step.step for step in walk.steps)
    return {name: walk.outputs[name] for name in names if walk.outputs.get(name, NOTHING) is not NOTHING}
