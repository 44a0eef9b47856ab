"""Approvals that go stale: the first call that leaves the process starts in time, or the gate is entered again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.engine.policies import asked_for, called, resumed, sign, v12
from tests.engine.scripted import Played, Script, a_tool, a_tool_step, an_action, decided, play
from workflows.engine.effects import (
    AskModel,
    CallTool,
    Decision,
    Granted,
    IsStillValid,
    ModelGate,
    ModelText,
    Pause,
    ToolOutput,
    WentStale,
)
from workflows.engine.events import StepCompleted
from workflows.engine.gates import MAX_REOPENS
from workflows.engine.situation import Position, Situation
from workflows.spec.model import Guardrails, Spec

UNTIL = "2026-11-29T10:00:00.000Z"
TELL = a_tool("tell", url="http://tools.test/tell")
SENT, TOLD = ToolOutput(value={"id": "p-1"}), ToolOutput(value="told")
PAID: dict[str, Any] = {"send": [SENT], "tell": [TOLD]}


def paying(**policy: Any) -> Spec:
    return v12(a_tool_step(), tools=(asked_for(valid_for=3600, **policy), TELL))


def yes(pause: Pause, **changed: Any) -> Decision:
    return decided(pause, True, valid_until=UNTIL, phase=pause.phase, **changed)


def questions(played: Played) -> list[IsStillValid]:
    return [effect for effect in played.effects if isinstance(effect, IsStillValid)]


def test_an_approval_in_time_is_used_and_its_first_call_carries_it() -> None:
    spec = paying(on_decision={"approved": "tell"})
    pause = play(spec).pauses[0]
    played = play(spec, resumed(pause, yes(pause)), Script(tools=PAID))
    granted = Granted(decision=yes(pause), step="go")
    assert [one.granted for one in questions(played)] == [granted]
    first, second = [effect for effect in played.effects if isinstance(effect, CallTool)]
    assert (first.step, first.granted) == ("go.on_decision", granted)
    assert (second.step, second.granted) == ("go", None)
    assert played.line == "S C C completed"


@pytest.mark.parametrize("reopens", [0, MAX_REOPENS])
def test_one_that_ended_is_asked_for_again_however_often_that_was(reopens: int) -> None:
    spec = paying(auto={"approve_if": "true"})
    pause = play(spec, script=Script(expressions={"true": False})).pauses[0]
    ended = yes(pause, reopens=reopens)
    again = play(spec, resumed(pause, ended), Script(valid=[False])).pauses[0]
    assert again.differs_from == ended
    assert again.went_stale
    assert UNTIL in again.what_differs
    assert (again.digest, again.verdict) == (pause.digest, None)


def test_something_else_than_was_approved_comes_first() -> None:
    spec = paying()
    pause = play(spec).pauses[0]
    played = play(spec, resumed(pause, yes(pause, digest="1:other")), Script(valid=[False]))
    assert (questions(played), played.pauses[0].went_stale) == ([], False)


def test_an_answer_without_an_end_and_a_no_are_not_asked_about() -> None:
    spec = v12(sign(), sign("last"))
    pause = play(spec).pauses[0]
    assert questions(play(spec, resumed(pause, decided(pause, True)))) == []
    no = decided(pause, (False, "no"), valid_until=UNTIL, goes_on=True)
    assert questions(play(spec, resumed(pause, no))) == []


@pytest.mark.parametrize("first", ["tell", "send"])
def test_when_it_ends_while_the_call_waits_for_its_turn_the_gate_is_entered_again(first: str) -> None:
    spec = paying(on_decision={"approved": "tell"} if first == "tell" else None)
    pause = play(spec).pauses[0]
    late: dict[str, Any] = {first: [WentStale()]}
    played = play(spec, resumed(pause, yes(pause)), Script(tools=late, valid=[True, False]))
    assert played.line == "S A", "the step is told once"
    assert played.pauses[0].went_stale
    assert played.pauses[0].outputs == {}


def test_an_answer_given_at_once_has_an_end_as_well() -> None:
    """As by a rule, or at a prompt: the same generator goes on."""
    spec = paying()
    at_once = yes(play(spec).pauses[0])
    script = Script(tools={"send": [WentStale(), SENT]}, valid=[False], decisions=[at_once, True])
    played = play(spec, script=script)
    assert played.line == "S A A C completed"
    assert [pause.went_stale for pause in played.pauses] == [False, True]


def test_edits_stay_part_of_what_is_asked_again() -> None:
    tool = asked_for(valid_for=3600, query={"sum": "a"}, editable=("action.query.sum",))
    spec = v12(a_tool_step(), tools=(tool,))
    plain = play(spec).pauses[0]
    edits = {"action.query.sum": "b"}
    edited = play(spec, Situation(input="go", edits=edits)).pauses[0]
    assert edited.digest != plain.digest
    late = replace(yes(edited), edits=edits)
    played = play(spec, resumed(edited, late), Script(tools={"send": [WentStale()]}, valid=[True, False]))
    assert (played.pauses[0].digest, played.pauses[0].differs_from) == (edited.digest, late)


# The first call comes later ------------------------------------------------------------------------------------


def signed_first() -> Spec:
    return v12(sign(valid_for=60), sign("note", mode="record"), an_action("think"), tools=())


def test_an_approval_step_hands_its_approval_on_to_the_first_call_behind_it() -> None:
    spec = signed_first()
    pause = play(spec).pauses[0]
    script = Script(models={"think": [ModelText(text="hm")]}, recorded=["k-1"])
    played = play(spec, resumed(pause, yes(pause)), script)
    (question,) = [effect for effect in played.effects if isinstance(effect, AskModel)]
    assert question.granted == Granted(decision=yes(pause), step="sign")
    assert played.line == "S C S A C S C completed"


def test_what_came_of_an_ended_approval_is_forgotten_and_its_gate_entered_again() -> None:
    spec = signed_first()
    pause = play(spec).pauses[0]
    script = Script(models={"think": [WentStale()]}, recorded=["k-1"], valid=[True, False])
    played = play(spec, resumed(pause, yes(pause)), script)
    assert played.line == "S C S A C S S A"
    again = played.pauses[-1]
    assert (again.step, again.went_stale, again.outputs) == ("sign", True, {})


def test_also_when_another_process_goes_on_behind_the_gate() -> None:
    spec = signed_first()
    pause = play(spec).pauses[0]
    outputs: dict[str, Any] = {"sign": {"approved": True}, "note": {"recorded": True}}
    later = Situation(input="go", position=Position(step_index=2, outputs=outputs), decision=yes(pause))
    played = play(spec, later, Script(models={"think": [WentStale()]}, valid=[False]))
    assert played.line == "S S A"
    assert (played.pauses[0].step, played.pauses[0].outputs) == ("sign", {})


def test_behind_a_guardrail_the_answer_is_kept() -> None:
    rails = Guardrails(confidence_threshold=0.8, fallback_action="escalate_to_human")
    spec = v12(an_action(confidence_gate=True), a_tool_step(tool="tell"), guardrails=rails, tools=(TELL,))
    unsure = {"decide": [ModelGate(result="maybe", confidence=0.1)]}
    pause = play(spec, script=Script(models=unsure)).pauses[0]
    script = Script(tools={"tell": [WentStale()]}, valid=[True, False])
    played = play(spec, resumed(pause, yes(pause)), script)
    assert played.line == "S A"
    assert (played.pauses[0].step, played.pauses[0].phase) == ("decide", "after")
    assert played.pauses[0].outputs == {"decide": "maybe"}
    assert called(played) == [("go", "tell")]
    assert not [event for event in played.events if isinstance(event, StepCompleted)]
