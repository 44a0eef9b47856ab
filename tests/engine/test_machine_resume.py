"""Entering a run again: replay, both phases, and a decision that has to fit what would run now (design 3.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.engine.scripted import (
    Played,
    Script,
    a_condition,
    a_spec,
    a_tool,
    a_tool_step,
    an_action,
    an_approval,
    decided,
    play,
)
from workflows.engine.effects import Decision, ModelGate, ModelText, Pause, ToolOutput
from workflows.engine.events import Failed, Rejected, StepCompleted, StepStarted
from workflows.engine.situation import Position, Situation
from workflows.engine.values import NOTHING
from workflows.spec.model import Body, Guardrails, Spec, VarDecl

OK = [ToolOutput(value={"ok": True})]
PAY = a_tool("pay", requires_approval=True, body=Body(kind="json", json_={"to": "{{ trigger.to }}"}))
SPEC = a_spec(an_action("draft"), a_tool_step("go", "pay"), an_action("close"), tools=[PAY])
DONE: dict[str, Any] = {"draft": {"text": "a draft"}}
CLOSING = {"close": [ModelText(text="closed")]}


def script(to: str = "Ada", **more: Any) -> Script:
    return Script(expressions={"trigger.to": to}, tools={"pay": OK}, models=CLOSING, **more)


def paused_at(spec: Spec, situation: Situation, answers: Script) -> Pause:
    (pause,) = play(spec, situation, answers).pauses
    return pause


def before(index: int, outputs: dict[str, Any], decision: Decision | None, **more: Any) -> Situation:
    return Situation(
        input="go", position=Position(step_index=index, outputs=outputs), decision=decision, replay=True, **more
    )


def approved(to: str = "Ada", **changed: Any) -> Decision:
    return decided(paused_at(SPEC, before(1, DONE, None), script(to)), True, **changed)


def called(played: Played) -> list[str]:
    return [call.tool for call in played.calls]


def test_a_stored_decision_lets_exactly_the_shown_call_run() -> None:
    played = play(SPEC, before(1, DONE, approved()), script())
    assert played.line == "C S C S C completed"
    assert played.pauses == []
    assert called(played) == ["pay"]
    assert played.calls[0].approved is True


def test_replay_tells_stored_outputs_first_and_in_step_order_even_those_without_a_value() -> None:
    spec = a_spec(an_action("one"), an_action("two"), an_approval("three"))
    outputs = {"two": {"text": "2"}, "one": NOTHING}
    played = play(spec, before(2, outputs, None))
    assert played.events == [
        StepCompleted(step="one", index=0, output=NOTHING, replayed=True),
        StepCompleted(step="two", index=1, output={"text": "2"}, replayed=True),
        StepStarted(step="three", index=2),
    ]


def test_a_run_that_is_taken_over_does_not_tell_its_outputs_again() -> None:
    situation = Situation(input="go", position=Position(step_index=1, outputs=DONE))
    assert play(SPEC, situation, script()).line == "S A"


def test_replay_comes_before_a_failure_of_the_vars() -> None:
    spec = a_spec(an_action("draft"), an_approval(), vars={"limit": VarDecl(type="number")})
    assert play(spec, before(1, DONE, None)).line == "C F"


def test_overrides_come_with_the_situation_of_a_resume() -> None:
    spec = a_spec(an_approval(), vars={"limit": VarDecl(type="number")})
    assert play(spec, before(0, {}, None, overrides={"limit": 3})).line == "S A"


def test_an_approval_step_takes_the_stored_reason() -> None:
    spec = a_spec(an_approval(message="Pay?"))
    decision = decided(paused_at(spec, Situation(input="go"), Script()), (True, "ok by me"))
    assert play(spec, before(0, {}, decision)).last.output == {"review": {"approved": True, "reason": "ok by me"}}


def test_a_stored_decision_counts_once() -> None:
    spec = a_spec(an_approval("one"), an_approval("one"))
    decision = decided(paused_at(spec, Situation(input="go"), Script()), True)
    assert play(spec, before(0, {}, decision)).line == "S C S A"


def test_a_decision_for_another_step_is_not_looked_at() -> None:
    played = play(SPEC, before(1, DONE, approved(step_index=0)), script())
    assert played.line == "C S A"
    assert played.pauses[0].differs_from is None


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_stored_rejection_rejects_without_looking_at_anything(phase: Any) -> None:
    decision = replace(approved(), approved=False, reason="no")
    position = Position(step_index=1, phase=phase, outputs=DONE)
    played = play(SPEC, Situation(input="go", position=position, decision=decision))
    assert played.last == Rejected(step="go", reason="no")
    assert played.line == ("S R" if phase == "before" else "R")
    assert played.effects == []


# The decision does not fit ------------------------------------------------------------------------------------


def test_another_content_is_asked_for_again_and_says_that_the_call_differs() -> None:
    decision = approved("Ada")
    (pause,) = play(SPEC, before(1, DONE, decision), script("Mallory")).pauses
    assert pause.differs_from == decision
    assert '"pay"' in pause.what_differs
    assert pause.action is not None
    assert pause.action["body"] == {"json": {"to": "Mallory"}}
    assert pause.digest != decision.digest


def test_a_reopened_request_that_is_approved_goes_on() -> None:
    played = play(SPEC, before(1, DONE, approved("Ada")), script("Mallory", decisions=[True]))
    assert played.line == "C S A C S C completed"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "approval", "tool": None}, ("approval", "tool")),
        ({"tool": "refund"}, ("refund", "pay")),
        ({"digest": "1:00"}, ("pay",)),
    ],
)
def test_another_kind_tool_or_digest_is_asked_for_again(changed: dict[str, Any], words: tuple[str, ...]) -> None:
    played = play(SPEC, before(1, DONE, approved(**changed)), script())
    assert called(played) == []
    (pause,) = played.pauses
    assert all(word in pause.what_differs for word in words)


def test_a_changed_message_is_asked_for_again() -> None:
    spec = a_spec(an_approval(message="Pay {{ trigger.n }}?"))
    decision = decided(paused_at(spec, Situation(input="go"), Script(expressions={"trigger.n": 1})), True)
    (pause,) = play(spec, before(0, {}, decision), Script(expressions={"trigger.n": 2})).pauses
    assert "message" in pause.what_differs


def test_after_three_reopens_the_run_fails_naming_what_differs() -> None:
    played = play(SPEC, before(1, DONE, approved("Ada", reopens=3)), script("Mallory"))
    assert played.line == "C S F"
    assert '"pay"' in played.last.error
    assert called(played) == []


def test_a_fourth_time_that_fits_runs() -> None:
    assert called(play(SPEC, before(1, DONE, approved(reopens=3)), script())) == ["pay"]


ROUTES = a_spec(
    a_condition("execute_tool(pay)", else_="execute_tool(free)"),
    tools=[PAY, a_tool("free")],
)


def route(ok: bool) -> Script:
    return Script(expressions={"trigger.ok": ok, "trigger.to": "Ada"}, tools={"pay": OK, "free": OK})


def test_no_gate_any_more_fails_before_anything_acts() -> None:
    decision = decided(paused_at(ROUTES, Situation(input="go"), route(True)), True)
    played = play(ROUTES, before(0, {}, decision), route(False))
    assert isinstance(played.last, Failed)
    assert "the approved action no longer applies" in played.last.error
    assert called(played) == []


def test_a_decision_stored_for_a_model_step_fails_before_the_model_is_asked() -> None:
    played = play(SPEC, before(0, {}, approved(step_index=0)), script())
    assert "no longer applies" in played.last.error
    assert played.questions == []


# After ---------------------------------------------------------------------------------------------------------

GUARDED = a_spec(
    an_action(confidence_gate=True),
    an_action("close"),
    guardrails=Guardrails(confidence_threshold=0.7, fallback_action="escalate_to_human"),
    version="1.0",
)
UNSURE = Script(models={"decide": [ModelGate(result={"refund": True}, confidence=0.2)], **CLOSING})


def after(decision: Decision | None, output: Any = None) -> Situation:
    outputs = {"decide": output or {"refund": True}}
    return Situation(
        input="go",
        position=Position(step_index=0, phase="after", outputs=outputs),
        decision=decision,
        replay=True,
    )


def test_after_a_guardrail_the_next_step_starts_and_the_model_is_not_asked_again() -> None:
    decision = decided(paused_at(GUARDED, Situation(input="go"), UNSURE), True)
    played = play(GUARDED, after(decision), UNSURE)
    assert played.line == "C S C completed"
    assert [question.step for question in played.questions] == ["close"]


def test_a_guardrail_decision_for_another_output_is_asked_for_again() -> None:
    decision = decided(paused_at(GUARDED, Situation(input="go"), UNSURE), True)
    (pause,) = play(GUARDED, after(decision, {"refund": False}), UNSURE).pauses
    assert (pause.phase, pause.differs_from, pause.action) == ("after", decision, {"refund": False})
    assert "output" in pause.what_differs


def test_a_guardrail_that_nobody_answered_is_asked_again() -> None:
    played = play(GUARDED, after(None), UNSURE)
    assert (played.line, played.questions) == ("C A", [])


def test_behind_a_step_without_a_guardrail_the_run_just_goes_on() -> None:
    position = Position(step_index=1, phase="after", outputs={**DONE, "go": {"ok": True}})
    played = play(SPEC, Situation(input="go", position=position, decision=approved()), script())
    assert played.line == "S C completed"
