"""Asking a person, and taking a decision that was stored for this place (design 3.3, 6; engine semantics 5, 21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workflows.engine import editing, jsontext
from workflows.engine.digest import action_digest
from workflows.engine.effects import AskPerson, Decision, Granted, IsStillValid, Pause, PauseKind, Recorded
from workflows.engine.values import Json
from workflows.engine.walk import Advance, Place, StepFailed, Walk, wrong_outcome
from workflows.spec.model import ActionStep, Guardrails, Tool
from workflows.spec.policy_model import Policy

#: So many times a step's request is opened again because something else would run; then the run fails.
MAX_REOPENS = 3
REJECTED = "The approval was rejected."
EXPIRED = "nobody decided in time: the approval expired"


def plain_pause(walk: Walk, place: Place, *, kind: PauseKind, reason: str, policy: Policy) -> Pause:
    """A gate that shows nothing but its message: an approval step, or a branch that asks."""
    digest = _digest(walk, place, kind=kind, message=reason, action=None)
    return _pause(walk, place, kind=kind, reason=reason, digest=digest, policy=policy)


def tool_pause(walk: Walk, place: Place, *, tool: Tool, action: Json, marked: Json, url_marks: dict[str, str]) -> Pause:
    """The gate of a tool's call. `action` is what is shown, `marked` the same for the digest."""
    reason = f'Tool "{tool.name}" needs approval before it runs.'
    digest = _digest(walk, place, kind="tool", message=reason, action=marked, url_marks=url_marks)
    pause = _pause(walk, place, kind="tool", reason=reason, digest=digest, policy=tool.policy)
    return replace(pause, tool=tool.name, action=action, url_marks=url_marks)


def taken(walk: Walk, pause: Pause) -> Advance[Decision | Pause]:
    """The stored decision if it was given for exactly this; otherwise the pause that has to ask, again or at last.

    A rejection needs no comparison. An approval that ended before anything was called is asked for again, as often as
    that happens (spec 1.2, `valid_for`); StepFailed when what waits keeps changing.
    """
    _check_showable(pause)
    stored, walk.stored = walk.stored_for(walk.place(pause.step_index)), None
    if stored is not None:
        if not stored.approved:
            return stored
        differs = _what_differs(stored, pause)
        if not differs:
            return (yield from _in_time(stored, pause))
        if stored.reopens >= MAX_REOPENS:
            raise StepFailed(
                f'Step "{pause.step}": what needs approval changed again after it was asked for {MAX_REOPENS} times'
                f" more: {differs}. Start a new run."
            )
        return replace(pause, differs_from=stored, what_differs=differs)
    return pause


def granted(decision: Decision, step: str) -> Granted | None:
    """The approval as calls are made under it, where it has an end."""
    if not decision.approved or decision.valid_until is None:
        return None
    return Granted(decision=decision, step=step)


def _in_time(stored: Decision, pause: Pause) -> Advance[Decision | Pause]:
    approval = granted(stored, pause.step)
    if approval is None:
        return stored
    effect = IsStillValid(granted=approval)
    answer = yield effect
    if not isinstance(answer, bool):
        raise wrong_outcome(effect, answer)
    if answer:
        return stored
    ended = f"nothing else: the approval held until {stored.valid_until}, and nothing had been called by then"
    return replace(pause, differs_from=stored, what_differs=ended, went_stale=True)


def asked(pause: Pause) -> Advance[Decision]:
    """The answer of a person, or of whoever decides for one."""
    effect = AskPerson(pause=pause)
    answer = yield effect
    if not isinstance(answer, Decision):
        raise wrong_outcome(effect, answer)
    return answer


def recorded(pause: Pause) -> Advance[str | None]:
    """The key under which a decision is asked for while the run goes on (`mode: record`); None where none is stored."""
    effect = AskPerson(pause=pause)
    answer = yield effect
    if not isinstance(answer, Recorded):
        raise wrong_outcome(effect, answer)
    return answer.key


def no_gate_here(walk: Walk, place: Place) -> None:
    """StepFailed when a decision was stored for this step: it is about to act, or to end, and nothing asked for it."""
    stored = walk.stored_for(place)
    if stored is not None:
        what = f'tool "{stored.tool}"' if stored.tool else f"a gate of kind {stored.kind}"
        raise StepFailed(
            f'Step "{place.step}": the approved action no longer applies: {what} was approved, and the step now'
            " goes another way without asking. Nothing was run."
        )


def _digest(
    walk: Walk,
    place: Place,
    *,
    kind: PauseKind,
    message: str,
    action: Json,
    url_marks: Mapping[str, str] | None = None,
) -> str:
    """What people changed of earlier outputs counts besides: it is shown, and later steps read it."""
    changed = editing.of_outputs(walk.edits_for(place))
    return action_digest(
        kind=kind, step=place.step, message=message, action=action, url_marks=url_marks, changed=changed
    )


def _pause(walk: Walk, place: Place, *, kind: PauseKind, reason: str, digest: str, policy: Policy) -> Pause:
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
        policy=policy,
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


def guardrail(walk: Walk, place: Place, confidence: float | None) -> Pause | None:
    """The gate at which a person is asked, when the completed step's confidence is below the threshold.

    StepFailed without a fallback. `confidence` None is certain: the model client returned none.
    """
    guardrails = _guardrails(walk, place)
    if guardrails is None or not _below(guardrails, confidence):
        return None
    present, threshold = jsontext.as_text(_present(confidence)), jsontext.as_text(guardrails.confidence_threshold)
    numbers = f"confidence {present} is below the threshold {threshold}"
    if guardrails.fallback_action != "escalate_to_human":
        fallback = guardrails.fallback_action or "none is set"
        raise StepFailed(f'Step "{place.step}": {numbers}, and no fallback action can be taken ({fallback}).')
    return _guardrail_pause(walk, place, f'Step "{place.step}": {numbers}.')


def is_guarded(walk: Walk, place: Place, confidence: float | None) -> bool:
    """Whether the completed step has a gate behind it: its position is there until the gate lets the run pass."""
    guardrails = _guardrails(walk, place)
    if guardrails is None or guardrails.fallback_action != "escalate_to_human":
        return False
    return _below(guardrails, confidence)


def _below(guardrails: Guardrails, confidence: float | None) -> bool:
    threshold = guardrails.confidence_threshold
    return threshold is not None and _present(confidence) < threshold


def _present(confidence: float | None) -> float:
    return 1 if confidence is None else confidence


def guardrail_again(walk: Walk, place: Place) -> Pause | None:
    """The gate of a completed step at which the run waited."""
    if _guardrails(walk, place) is None:
        return None
    return _guardrail_pause(walk, place, f'Step "{place.step}": its confidence was below the threshold.')


def _guardrails(walk: Walk, place: Place) -> Guardrails | None:
    """The guardrails, if they look at this step: it is a gate, and there is a threshold."""
    step, guardrails = walk.steps[place.index], walk.spec.agent.guardrails
    if guardrails is None or guardrails.confidence_threshold is None:
        return None
    return guardrails if isinstance(step, ActionStep) and step.confidence_gate else None


def _guardrail_pause(walk: Walk, place: Place, reason: str) -> Pause:
    """The digest leaves the reason out: it holds the confidence, which is not kept, and the output is what counts."""
    output = walk.outputs[place.step]
    digest = _digest(walk, place, kind="guardrail", message="", action={"output": output})
    policy = walk.spec.agent.policy
    pause = _pause(walk, place, kind="guardrail", reason=reason, digest=digest, policy=policy)
    return replace(pause, phase="after", action=output)
