"""A run as a generator: it yields facts and requests, is sent each request's outcome, and touches nothing itself.

The same generator is driven by the command line, a worker, a test with scripted outcomes, and a resume.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from workflows.engine import deciding, gates, keeping, steps, tools, vars
from workflows.engine.effects import Effect, Pause, ReadEnvironment
from workflows.engine.events import Completed, EngineEvent, Failed, Rejected, StepCompleted, StepStarted
from workflows.engine.situation import Situation
from workflows.engine.values import NOTHING, Json
from workflows.engine.vars import VarsError
from workflows.engine.walk import Advance, Place, StepFailed, StepRejected, Walk
from workflows.spec.model import Spec


def run(spec: Spec, situation: Situation) -> Generator[EngineEvent | Effect, Any, None]:
    """Everything the run does from `situation.position` on, to its end.

    The driver sends the outcome of each effect; it closes the generator when nobody answers an AskPerson now.
    """
    position = situation.position
    walk = Walk(spec=spec, situation=situation, outputs=dict(position.outputs), stored=situation.decision)
    yield from _replayed(walk)
    if (yield from _was_rejected(walk)):
        return
    try:
        walk.variables = yield from _variables(walk)
    except VarsError as problem:
        yield Failed(error=str(problem))
        return
    first = position.step_index
    if position.phase == "after":
        if not (yield from _entered_after(walk, walk.place(first))):
            return
        first += 1
    for index in range(first, len(walk.steps)):
        if not (yield from _step(walk, walk.place(index))):
            return
    names = {step.step for step in walk.steps}
    yield Completed(output=_in_step_order(walk), inner=tuple(name for name in walk.outputs if name not in names))


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
    place = walk.place(position.step_index)
    if position.phase == "before":
        yield StepStarted(step=place.step, index=place.index)
    yield Rejected(step=place.step, reason=stored.reason or gates.REJECTED)
    return True


def _variables(walk: Walk) -> Advance[dict[str, Json]]:
    """The vars of a 1.1 spec, resolved again for every start: the digest catches what a change of them changes."""
    if walk.spec.is_1_0:
        return {}
    overrides = walk.situation.overrides
    names = vars.names_needed(walk.spec, overrides)
    env = (yield ReadEnvironment(names=names)) if names else {}
    return vars.resolve(walk.spec, overrides, env)


def _step(walk: Walk, place: Place) -> Advance[bool]:
    """Whether the run goes on after this step; its events say why when it does not."""
    yield StepStarted(step=place.step, index=place.index)
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
        )
        yield from _guarded(walk, place, gates.guardrail(walk, place, done.confidence))
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
