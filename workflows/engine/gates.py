"""Asking a person, and taking a decision that was stored for this place (design 3.3, 6; engine semantics 5, 21)."""

from __future__ import annotations

from dataclasses import replace

from workflows.engine import jsontext
from workflows.engine.digest import action_digest
from workflows.engine.effects import AskPerson, Decision, Pause, PauseKind
from workflows.engine.values import Json
from workflows.engine.walk import Advance, Place, StepFailed, StepRejected, Walk, wrong_outcome
from workflows.spec.model import ActionStep, Guardrails

#: So many times a step's request is opened again because something else would run; then the run fails.
MAX_REOPENS = 3
REJECTED = "The approval was rejected."


def approval(walk: Walk, place: Place, *, kind: PauseKind, reason: str) -> Advance[Decision]:
    """The decision on a gate that shows nothing but its message: an approval step, or a branch that asks."""
    digest = action_digest(kind=kind, step=place.step, message=reason, action=None)
    return (yield from pass_gate(walk, _pause(walk, place, kind=kind, reason=reason, digest=digest)))


def tool_approval(
    walk: Walk, place: Place, *, tool: str, action: Json, marked: Json, url_marks: dict[str, str]
) -> Advance[Decision]:
    """The decision on calling a tool. `action` is what is shown, `marked` the same for the digest."""
    reason = f'Tool "{tool}" needs approval before it runs.'
    digest = action_digest(kind="tool", step=place.step, message=reason, action=marked, url_marks=url_marks)
    pause = _pause(walk, place, kind="tool", reason=reason, digest=digest)
    return (yield from pass_gate(walk, replace(pause, tool=tool, action=action)))


def pass_gate(walk: Walk, pause: Pause) -> Advance[Decision]:
    """The approval that lets the run go on: the stored one if it was given for exactly this, otherwise a person's.

    StepRejected when the answer is no; StepFailed when what waits keeps changing.
    """
    _check_showable(pause)
    stored, walk.stored = walk.stored_for(walk.place(pause.step_index)), None
    if stored is not None:
        if not stored.approved:
            raise StepRejected(stored.reason or REJECTED)
        differs = _what_differs(stored, pause)
        if not differs:
            return stored
        if stored.reopens >= MAX_REOPENS:
            raise StepFailed(
                f'Step "{pause.step}": what needs approval changed again after it was asked for {MAX_REOPENS} times'
                f" more: {differs}. Start a new run."
            )
        pause = replace(pause, differs_from=stored, what_differs=differs)
    effect = AskPerson(pause=pause)
    answer = yield effect
    if not isinstance(answer, Decision):
        raise wrong_outcome(effect, answer)
    if not answer.approved:
        raise StepRejected(answer.reason or REJECTED)
    return answer


def no_gate_here(walk: Walk, place: Place) -> None:
    """StepFailed when a decision was stored for this step: it is about to act, or to end, and nothing asked for it."""
    stored = walk.stored_for(place)
    if stored is not None:
        what = f'tool "{stored.tool}"' if stored.tool else f"a gate of kind {stored.kind}"
        raise StepFailed(
            f'Step "{place.step}": the approved action no longer applies: {what} was approved, and the step now'
            " goes another way without asking. Nothing was run."
        )


def _pause(walk: Walk, place: Place, *, kind: PauseKind, reason: str, digest: str) -> Pause:
    return Pause(
        step_index=place.index,
        step=place.step,
        phase="before",
        kind=kind,
        reason=reason,
        tool=None,
        action=None,
        digest=digest,
        outputs=dict(walk.outputs),
    )


def _what_differs(stored: Decision, pause: Pause) -> str:
    if stored.kind != pause.kind:
        return f"the decision was for a gate of kind {stored.kind}, and now one of kind {pause.kind} asks"
    if stored.tool != pause.tool:
        return f'the decision was for tool "{stored.tool}", and now tool "{pause.tool}" would run'
    if stored.digest == pause.digest:
        return ""
    if pause.tool is not None:
        return f'the call of tool "{pause.tool}" is not the one that was shown'
    if pause.phase == "after":
        return f'the output of step "{pause.step}" is not the one that was shown'
    return "the message is not the one that was shown"


def _check_showable(pause: Pause) -> None:
    """StepFailed when what a person would be shown cannot be kept (half a surrogate pair, NUL)."""
    try:
        jsontext.check({"reason": pause.reason, "action": pause.action}, spare=1)
    except jsontext.NotJson as problem:
        raise StepFailed(f'Step "{pause.step}": a person cannot be asked about this action: {problem}') from problem


# The confidence guardrail ------------------------------------------------------------------------------------


def guardrail(walk: Walk, place: Place, confidence: float | None) -> Advance[None]:
    """Ask a person when the completed step's confidence is below the threshold; without a fallback, StepFailed.

    `confidence` None is certain: the model client returned none.
    """
    guardrails = _guardrails(walk, place)
    if guardrails is None or guardrails.confidence_threshold is None:
        return
    threshold = guardrails.confidence_threshold
    present = 1 if confidence is None else confidence
    if not present < threshold:
        return
    numbers = f"confidence {jsontext.as_text(present)} is below the threshold {jsontext.as_text(threshold)}"
    if guardrails.fallback_action != "escalate_to_human":
        fallback = guardrails.fallback_action or "none is set"
        raise StepFailed(f'Step "{place.step}": {numbers}, and no fallback action can be taken ({fallback}).')
    yield from pass_gate(walk, _guardrail_pause(walk, place, f'Step "{place.step}": {numbers}.'))


def guardrail_again(walk: Walk, place: Place) -> Advance[None]:
    """Take the decision that was stored for this completed step; ask again when there is none, or it does not fit."""
    if _guardrails(walk, place) is not None:
        reason = f'Step "{place.step}": its confidence was below the threshold.'
        yield from pass_gate(walk, _guardrail_pause(walk, place, reason))


def _guardrails(walk: Walk, place: Place) -> Guardrails | None:
    """The guardrails, if they look at this step: it is a gate, and there is a threshold."""
    step, guardrails = walk.steps[place.index], walk.spec.agent.guardrails
    if guardrails is None or guardrails.confidence_threshold is None:
        return None
    return guardrails if isinstance(step, ActionStep) and step.confidence_gate else None


def _guardrail_pause(walk: Walk, place: Place, reason: str) -> Pause:
    """The digest leaves the reason out: it holds the confidence, which is not kept, and the output is what counts."""
    output = walk.outputs[place.step]
    digest = action_digest(kind="guardrail", step=place.step, message="", action={"output": output})
    pause = _pause(walk, place, kind="guardrail", reason=reason, digest=digest)
    return replace(pause, phase="after", action=output)
