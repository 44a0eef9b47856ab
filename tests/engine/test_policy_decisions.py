"""What follows a decision: tools called on it, and a rejection that does not end the run (spec 1.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.policies import asked_for, called, inner, resumed, sign, v12
from tests.engine.scripted import Script, a_condition, a_spec, a_tool, a_tool_step, an_action, decided, play
from workflows.engine.effects import Evaluate, ModelGate, ToolFailed, ToolOutput
from workflows.engine.events import StepCompleted
from workflows.engine.situation import Position, Situation
from workflows.engine.state import event_json
from workflows.spec.model import Guardrails, Spec
from workflows.spec.policy_model import OnDecision, Policy

TELL = a_tool("tell", url="http://tools.test/tell")
OK: dict[str, Any] = {"tell": [ToolOutput(value="told")], "send": [ToolOutput(value={"id": "p-1"})]}
BOTH = {"approved": "tell", "rejected": "tell"}


# on_decision ---------------------------------------------------------------------------------------------------


def test_the_tool_of_an_approval_comes_before_the_gated_action_and_is_kept_beside_the_outputs() -> None:
    spec = v12(a_tool_step(), tools=(asked_for(on_decision=BOTH), TELL))
    played = play(spec, script=Script(tools=OK, decisions=[True]))
    assert called(played) == [("go.on_decision", "tell"), ("go", "send")]
    assert inner(played.events) == {"go.on_decision": "told"}
    assert played.last.output == {"go": {"id": "p-1"}}


def test_the_tool_of_a_rejection_is_called_and_then_the_run_ends() -> None:
    spec = v12(a_tool_step(), tools=(asked_for(on_decision=BOTH), TELL))
    pause = play(spec).pauses[0]
    no = decided(pause, (False, "too much"), goes_on=True)
    played = play(spec, resumed(pause, no), Script(tools=OK))
    assert called(played) == [("go.on_decision", "tell")]
    assert played.line == "S C R"
    assert played.last.reason == "too much"


@pytest.mark.parametrize(("approved", "keys"), [(True, {"rejected": "tell"}), (False, {"approved": "tell"})])
def test_a_tool_of_the_other_answer_is_not_called(approved: bool, keys: dict[str, str]) -> None:
    spec = v12(sign(on_decision=keys), tools=(TELL,))
    assert play(spec, script=Script(decisions=[approved])).calls == []


@pytest.mark.parametrize("approved", [True, False])
def test_when_it_fails_the_run_fails_before_the_gated_action(approved: bool) -> None:
    spec = v12(a_tool_step(), tools=(asked_for(on_decision=BOTH, on_reject="continue"), TELL))
    failing = {"tell": [ToolFailed(error='Tool "tell": no answer')]}
    played = play(spec, script=Script(tools=failing, decisions=[approved]))
    assert called(played) == [("go.on_decision", "tell")]
    assert played.last.error == 'Step "go": on_decision failed: Tool "tell": no answer'
    assert played.last.step == "go"


def test_it_is_not_called_again_when_the_step_is_entered_again() -> None:
    spec = v12(a_tool_step(), tools=(asked_for(on_decision=BOTH), TELL))
    pause = play(spec).pauses[0]
    again = resumed(pause, decided(pause, True), **{"go.on_decision": "told"})
    assert called(play(spec, again, Script(tools=OK))) == [("go", "send")]


def test_a_gate_that_opens_again_forgets_what_was_called_on_the_decision_that_no_longer_fits() -> None:
    spec = v12(a_tool_step(), tools=(asked_for(on_decision=BOTH), TELL))
    pause = play(spec).pauses[0]
    stale = resumed(pause, decided(pause, True, digest="1:other"), **{"go.on_decision": "told", "go.check": 1})
    again = play(spec, stale).pauses[0]
    assert again.outputs == {"go.check": 1}
    fits = decided(again, True, reopens=1)
    played = play(spec, resumed(again, fits), Script(tools=OK))
    assert called(played) == [("go.on_decision", "tell"), ("go", "send")]


@pytest.mark.parametrize("keys", [{"auto": {"check": "send"}}, {"on_decision": {"approved": "send"}}])
def test_a_tool_that_needs_an_approval_is_never_called_by_a_gate_whatever_loaded_it(keys: dict[str, Any]) -> None:
    spec = v12(sign(**keys), tools=(asked_for(),))
    played = play(spec, script=Script(tools=OK, decisions=[True]))
    assert played.calls == []
    if "auto" in keys:
        verdict = played.pauses[0].verdict
        assert verdict is not None
        assert (verdict.approved, "needs an approval itself" in verdict.reason) == (None, True)
    else:
        assert played.last.error.startswith('Step "sign": on_decision failed: Tool "send" needs an approval itself')


def test_the_decision_is_data_for_its_templates_and_for_those_alone() -> None:
    tell = a_tool("tell", query={"by": "{{ decision.by }}", "why": "{{ decision.reason }}"})
    spec = v12(a_tool_step(), tools=(asked_for(on_decision={"approved": "tell"}), tell))
    pause = play(spec).pauses[0]
    yes = decided(pause, (True, "{{ input }} ${HOME}"), by="asha", answers={"sum": 3})
    values = {"decision.by": "asha", "decision.reason": "{{ input }} ${HOME}"}
    played = play(spec, resumed(pause, yes), Script(tools=OK, expressions=values))
    (question,) = [effect for effect in played.effects if isinstance(effect, Evaluate)]
    told = {"approved": True, "reason": "{{ input }} ${HOME}", "by": "asha", "answers": {"sum": 3}}
    assert question.scope["decision"] == told
    assert "by=asha" in played.calls[0].url
    assert "%7B%7B" in played.calls[0].url  # what a person wrote is data


def test_the_root_is_whole_where_the_decision_says_little() -> None:
    tell = a_tool("tell", query={"by": "{{ decision.by }}"})
    spec = v12(sign(on_decision={"approved": "tell"}), tools=(tell,))
    played = play(spec, script=Script(tools=OK, expressions={"decision.by": ""}, decisions=[True]))
    (question,) = [effect for effect in played.effects if isinstance(effect, Evaluate)]
    assert question.scope["decision"] == {"approved": True, "reason": "", "by": "", "answers": {}}


def test_the_same_tool_can_check_and_be_told() -> None:
    spec = v12(sign(auto={"check": "tell"}, on_decision={"approved": "tell"}), tools=(TELL,))
    answers = {"tell": [ToolOutput(value={"decision": "ask"}), ToolOutput(value="told")]}
    played = play(spec, script=Script(tools=answers, decisions=[True]))
    assert called(played) == [("sign.check", "tell"), ("sign.on_decision", "tell")]
    assert inner(played.events) == {"sign.check": {"decision": "ask"}, "sign.on_decision": "told"}
    assert played.last.output == {"sign": {"approved": True}}
    assert played.last.inner == ("sign.check", "sign.on_decision")


def test_a_fresh_run_is_told_what_gates_called_before_the_step_that_they_guard() -> None:
    spec = v12(sign(), sign("last"), tools=(TELL,))
    outputs: dict[str, Any] = {"sign.check": 1, "sign.on_decision": 2, "sign": {"approved": True}, "last.check": 3}
    position = Position(step_index=1, outputs=outputs)
    played = play(spec, Situation(input="go", position=position, replay=True))
    told = [event for event in played.events if isinstance(event, StepCompleted)]
    assert [(event.step, event.index, event.within) for event in told] == [
        ("sign.check", 0, True),
        ("sign.on_decision", 0, True),
        ("sign", 0, False),
        ("last.check", 1, True),
    ]
    assert all(event.replayed for event in told)


# on_reject -----------------------------------------------------------------------------------------------------


def unsure(**policy: Any) -> Spec:
    rails = Guardrails(confidence_threshold=0.8, fallback_action="escalate_to_human")
    spec = v12(an_action(confidence_gate=True), sign("last"), guardrails=rails)
    agent = spec.agent.model_copy(update={"policy": Policy(**policy)})
    return spec.model_copy(update={"agent": agent})


UNSURE = {"decide": [ModelGate(result="maybe", confidence=0.1)]}
NO = (False, "not now")


def test_a_rejected_approval_step_says_so_and_the_next_step_runs() -> None:
    played = play(v12(sign(on_reject="continue"), sign("last")), script=Script(decisions=[NO, True]))
    assert played.line == "S A C S A C completed"
    assert played.last.output == {"sign": {"approved": False, "reason": "not now"}, "last": {"approved": True}}


def test_a_rejected_branch_says_so_with_its_reason_but_an_approved_one_keeps_none() -> None:
    step = a_condition("execute_tool(tell)").model_copy(update={"policy": Policy(on_reject="continue")})
    spec = v12(step, sign("last"), tools=(TELL,))
    for answer, output in ((NO, {"approved": False, "reason": "not now"}), ((True, "fine"), {"approved": True})):
        played = play(spec, script=Script(expressions={"trigger.ok": False}, decisions=[answer, True]))
        assert played.last.output["route"] == output
        assert played.calls == []


def test_a_rejected_call_is_not_made_and_the_next_step_runs() -> None:
    spec = v12(a_tool_step(), sign("last"), tools=(asked_for(on_reject="continue"),))
    played = play(spec, script=Script(decisions=[False, True]))
    assert played.calls == []
    assert played.last.output == {"go": {"approved": False}, "last": {"approved": True}}


def test_a_rejected_answer_of_a_model_is_not_used_and_the_next_step_runs() -> None:
    played = play(unsure(on_reject="continue"), script=Script(models=UNSURE, decisions=[NO, True]))
    assert played.line == "S C A C S A C completed"
    assert played.last.output == {"decide": {"approved": False, "reason": "not now"}, "last": {"approved": True}}
    first, second = [event for event in played.events if isinstance(event, StepCompleted) and event.step == "decide"]
    assert (first.output, first.guarded) == ("maybe", True)
    assert (second.output, second.guarded) == ({"approved": False, "reason": "not now"}, False)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize(
    ("confidence", "fallback", "guarded"),
    [
        (0.1, "escalate_to_human", True),
        (0.9, "escalate_to_human", False),
        (None, "escalate_to_human", False),
        (0.1, None, False),
    ],
)
def test_a_step_is_guarded_where_somebody_is_asked_behind_it_and_its_event_reads_as_ever(
    version: str, confidence: float | None, fallback: Any, guarded: bool
) -> None:
    rails = Guardrails(confidence_threshold=0.8, fallback_action=fallback)
    spec = a_spec(an_action(confidence_gate=True), version=version, guardrails=rails)
    played = play(spec, script=Script(models={"decide": [ModelGate(result="maybe", confidence=confidence)]}))
    (done,) = [event for event in played.events if isinstance(event, StepCompleted)]
    assert done.guarded == guarded
    assert set(event_json(done)) <= {"type", "step", "output", "confidence"}


def test_an_approved_answer_of_a_model_stays_as_it_was() -> None:
    played = play(unsure(on_reject="continue"), script=Script(models=UNSURE, decisions=[True, True]))
    assert played.last.output == {"decide": "maybe", "last": {"approved": True}}


def test_the_same_from_a_stored_decision_in_both_phases() -> None:
    waiting = play(unsure(on_reject="continue"), script=Script(models=UNSURE)).pauses[0]
    no = decided(waiting, NO, goes_on=True)
    played = play(unsure(on_reject="continue"), resumed(waiting, no), Script(decisions=[True]))
    assert (played.line, played.questions) == ("C S A C completed", [])
    assert played.last.output["decide"] == {"approved": False, "reason": "not now"}
    spec = v12(sign(on_reject="continue"), sign("last"))
    waiting = play(spec).pauses[0]
    played = play(spec, resumed(waiting, decided(waiting, NO, goes_on=True)), Script(decisions=[True]))
    assert played.last.output["sign"] == {"approved": False, "reason": "not now"}


def test_a_stored_no_that_does_not_go_on_ends_the_run_and_calls_nothing() -> None:
    spec = v12(sign(on_reject="continue", on_decision=BOTH), sign("last"), tools=(TELL,))
    waiting = play(spec).pauses[0]
    played = play(spec, resumed(waiting, decided(waiting, NO)))
    assert (played.line, played.calls) == ("S R", [])


def test_a_no_that_goes_on_at_a_gate_that_is_no_longer_there_runs_nothing() -> None:
    with_gate = v12(a_tool_step(), tools=(asked_for(on_reject="continue"),))
    waiting = play(with_gate).pauses[0]
    no = decided(waiting, NO, goes_on=True)
    played = play(v12(a_tool_step(), tools=(a_tool(),)), resumed(waiting, no), Script(tools=OK))
    assert played.calls == []
    assert "no longer applies" in played.last.error


def test_stop_is_what_holds_without_a_word() -> None:
    assert Policy().on_reject == "stop"
    assert Policy().on_decision == OnDecision()
    assert play(v12(sign()), script=Script(decisions=[NO])).line == "S A R"
