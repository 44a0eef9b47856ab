"""Passing a gate: the policy's own rules, the person, and what is called on the decision (design 3.3; spec 1.2).

What a gate's tools gave is kept beside the outputs, as `<step>.check`, `<step>.on_decision` and `<step>.on_expire`, so
that a run which is entered again does not call them again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from workflows.engine import gates, keeping, opening
from workflows.engine.calling import Caller, Purpose
from workflows.engine.effects import Decision, Pause
from workflows.engine.events import StepCompleted
from workflows.engine.values import Json, MaybeJson
from workflows.engine.walk import Advance, Place, StepFailed, StepRejected, Walk

#: What gates call, in the order in which they do.
CALLED: Final = ("check", "on_decision", "on_expire")


def pass_gate(walk: Walk, place: Place, pause: Pause, call: Caller) -> Advance[Decision]:
    """The decision with which the run goes on: an approval, or a rejection that its policy lets pass.

    StepRejected when the answer is no and ends the run; StepFailed when what waits keeps changing, or a tool that the
    policy calls on the decision fails.
    """
    decision = yield from gates.taken(walk, pause)
    if isinstance(decision, Pause):
        decision = yield from gates.asked((yield from opened(walk, place, decision, call)))
    walk.granted = gates.granted(decision, place.step)
    policy = pause.policy
    tool = policy.on_decision.approved if decision.approved else policy.on_decision.rejected
    if tool is not None:
        yield from called_on(walk, place, decision, tool, call)
    if not decision.approved and policy.on_reject == "stop":
        raise StepRejected(decision.reason or gates.REJECTED)
    return decision


def opened(walk: Walk, place: Place, pause: Pause, call: Caller) -> Advance[Pause]:
    """The pause with what its rules say. A gate that is opened again because something changed asks a person.

    What was called on the decision that no longer fits does not stand for what is called on the next one. Nor does one
    that was opened before ask its rules again.
    """
    auto = pause.policy.auto
    if pause.differs_from is not None:
        walk.outputs.pop(f"{place.step}.on_decision", None)
        return replace(pause, outputs=dict(walk.outputs))
    if walk.situation.opened and place.index == walk.situation.position.step_index:
        return pause
    verdict = yield from opening.by_rule(walk, place, pause)
    if verdict is None and auto.check is not None:
        try:
            answer = yield from _inside(walk, place, auto.check, Purpose(what="check"), call)
            verdict = opening.by_check(auto.check, answer)
        except StepFailed as problem:
            verdict = opening.by_no_check(auto.check, str(problem))
    # What the check gave is kept with the pause.
    return replace(pause, verdict=verdict, outputs=dict(walk.outputs))


def called_on(walk: Walk, place: Place, decision: Decision, tool: str, call: Caller) -> Advance[MaybeJson]:
    """What the tool gave that is called on this decision, or because there was none in time; StepFailed otherwise."""
    what = "on_decision" if decision.on_expire is None else "on_expire"
    purpose = Purpose(what=what, roots={"decision": _told(decision)}, again=decision.reopens)
    return (yield from _inside(walk, place, tool, purpose, call))


def output_of(decision: Decision) -> dict[str, Json]:
    """What a gate leaves as its step's output: the verdict, the reason if there is one, the answers of its form."""
    output: dict[str, Json] = {"approved": decision.approved}
    if decision.reason:
        output["reason"] = decision.reason
    if decision.answers is not None:
        output["answers"] = decision.answers
    return output


def kept_names(step: str) -> tuple[str, ...]:
    """The names under which what the gate of this step called is kept."""
    return tuple(f"{step}.{what}" for what in CALLED)


def _inside(walk: Walk, place: Place, tool: str, purpose: Purpose, call: Caller) -> Advance[MaybeJson]:
    name = f"{place.step}.{purpose.what}"
    if name in walk.outputs:
        return walk.outputs[name]
    try:
        output = yield from call(walk, place, tool, purpose)
        keeping.check_output(name, output)
    except StepFailed as problem:
        raise StepFailed(f'Step "{place.step}": {purpose.what} failed: {problem}') from problem
    walk.outputs[name] = output
    yield StepCompleted(step=name, index=place.index, output=output, within=True)
    return output


def _told(decision: Decision) -> dict[str, Json]:
    """The decision as expressions read it."""
    return {
        "approved": decision.approved,
        "reason": decision.reason or "",
        "by": decision.by or "",
        "answers": decision.answers if decision.answers is not None else {},
    }
