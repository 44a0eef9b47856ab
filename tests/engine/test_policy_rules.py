"""Rules and checks decide when the gate opens, before a person is asked (spec 1.2, `auto`)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.policies import OTHER, RULE, asked_for, inner, sign, v12
from tests.engine.scripted import Script, a_condition, a_tool, a_tool_step, decided, play
from workflows.engine.effects import Evaluate, ExpressionFailed, Recorded, RuleVerdict, ToolFailed, ToolOutput
from workflows.engine.events import Failed
from workflows.engine.situation import Position, Situation
from workflows.engine.values import NOTHING
from workflows.memory_run import by_rule

BOTH = {"approve_if": RULE, "reject_if": OTHER}
PAID = {"send": [ToolOutput(value={"id": "p-1"})]}


def verdict_of(auto: dict[str, str], **script: Any) -> RuleVerdict | None:
    """What the rules say of the call of a tool that needs approval; nobody answers."""
    spec = v12(a_tool_step(), tools=(asked_for(auto=auto), a_tool("look", method="GET")))
    played = play(spec, script=Script(**script))
    assert [pause.tool for pause in played.pauses] == ["send"]
    return played.pauses[0].verdict


@pytest.mark.parametrize(
    ("approve", "reject", "approved", "rule", "words"),
    [
        (True, False, True, RULE, ""),
        (False, True, False, OTHER, f"rejected by the rule {OTHER}"),
        (True, True, None, f"{RULE}; {OTHER}", "one rule approves this and another one rejects it"),
        (ExpressionFailed(index=0, reason="no"), True, None, RULE, "could not be applied"),
        (True, ExpressionFailed(index=0, reason="no"), None, OTHER, "could not be applied"),
        ("yes", False, None, RULE, "to a string"),
        (True, 1, None, OTHER, "to a number"),
        (None, False, None, RULE, "to null"),
        (NOTHING, False, None, RULE, "to nothing"),
    ],
)
def test_rules_decide_only_where_one_alone_is_true(
    approve: Any, reject: Any, approved: bool | None, rule: str, words: str
) -> None:
    verdict = verdict_of(BOTH, expressions={RULE: approve, OTHER: reject})
    assert verdict is not None
    assert (verdict.approved, verdict.rule) == (approved, rule)
    assert words in verdict.reason


def test_where_no_rule_is_true_a_person_is_asked_without_advice() -> None:
    assert verdict_of(BOTH, expressions={RULE: False, OTHER: False}) is None


def test_a_rule_reads_the_action_that_is_shown_and_the_output() -> None:
    spec = v12(a_tool_step(), tools=(asked_for(auto={"approve_if": RULE}, url="http://tools.test/${HOST}"),))
    played = play(spec, script=Script(expressions={RULE: False}, env={"HOST": "canary"}))
    (question,) = [effect for effect in played.effects if isinstance(effect, Evaluate) and effect.sources == (RULE,)]
    assert question.scope["action"] == played.pauses[0].action
    assert question.scope["action"]["url"] == "http://tools.test/${HOST}"
    assert "canary" not in str(question.scope)


def test_the_decision_of_a_rule_lets_the_call_run_or_ends_the_run() -> None:
    for approved, line in ((True, "S A C completed"), (False, "S A R")):
        spec = v12(a_tool_step(), tools=(asked_for(auto=BOTH),))
        script = Script(expressions={RULE: approved, OTHER: not approved}, tools=PAID, decisions=[True])
        waiting = play(spec, script=Script(expressions={RULE: approved, OTHER: not approved}))
        decision = by_rule(waiting.pauses[0])
        assert decision is not None
        assert (decision.approved, decision.surface, decision.by) == (approved, "rule", RULE if approved else OTHER)
        script.decisions = [(decision.approved, decision.reason)]
        assert play(spec, script=script).line == line


@pytest.mark.parametrize(
    ("keys", "goes_on"),
    [
        ({}, False),
        ({"on_reject": "continue"}, True),
        ({"on_decision": {"rejected": "look"}}, True),
        ({"on_decision": {"approved": "look"}}, False),
    ],
)
def test_the_no_of_a_rule_says_whether_the_run_is_entered_again_with_it(keys: dict[str, Any], goes_on: bool) -> None:
    for answer, expected in (("reject", goes_on), ("approve", False)):
        spec = v12(sign(auto={"check": "look"}, **keys), tools=(a_tool("look"),))
        played = play(spec, script=Script(tools={"look": [ToolOutput(value={"decision": answer})]}))
        decision = by_rule(played.pauses[0])
        assert decision is not None
        assert decision.goes_on == expected
        assert played.pauses[0].policy.goes_on_after_no == goes_on


@pytest.mark.parametrize(
    ("answer", "approved", "reason"),
    [
        ({"decision": "approve"}, True, ""),
        ({"decision": "reject", "reason": "too much"}, False, "too much"),
        ({"decision": "ask", "reason": "look at the sum"}, None, "look at the sum"),
        ({"decision": "ask"}, None, ""),
        ({"decision": "ask", "reason": {"sum": 3}}, None, '{"sum":3}'),
        ({"decision": "Approve"}, None, "gave no decision"),
        ({"decision": True}, None, "gave no decision"),
        ({"decision": ["approve"]}, None, "gave no decision"),
        ({"approve": True}, None, "gave no decision"),
        ("approve", None, "gave no decision"),
        ([], None, "gave no decision"),
        (None, None, "gave no decision"),
        (NOTHING, None, "nothing"),
    ],
)
def test_a_check_decides_in_its_own_words_only(answer: Any, approved: bool | None, reason: str) -> None:
    verdict = verdict_of({"check": "look"}, tools={"look": [ToolOutput(value=answer)]})
    assert verdict is not None
    assert (verdict.approved, verdict.rule) == (approved, "execute_tool(look)")
    assert reason in verdict.reason


@pytest.mark.parametrize("answer", [{"decision": "ask", "reason": "x" * 5000}, {"words": "x" * 5000}])
def test_a_long_reason_of_a_check_is_cut(answer: Any) -> None:
    verdict = verdict_of({"check": "look"}, tools={"look": [ToolOutput(value=answer)]})
    assert verdict is not None
    assert len(verdict.reason) == 2000


def test_a_long_failure_of_a_check_is_cut_as_well() -> None:
    verdict = verdict_of({"check": "look"}, tools={"look": [ToolFailed(error="x" * 5000)]})
    assert verdict is not None
    assert verdict.reason.startswith("the check failed: ")
    assert len(verdict.reason) == 2000


def test_a_check_that_fails_asks_a_person() -> None:
    verdict = verdict_of({"check": "look"}, tools={"look": [ToolFailed(error='Tool "look": no answer')]})
    assert verdict is not None
    assert verdict.approved is None
    assert "no answer" in verdict.reason


@pytest.mark.parametrize("answer", ["x" * (1024 * 1024), {"reason": "nul \0 here"}, {"reason": "\ud800"}])
def test_an_answer_that_cannot_be_kept_asks_a_person_and_is_not_kept(answer: Any) -> None:
    spec = v12(a_tool_step(), tools=(asked_for(auto={"check": "look"}), a_tool("look")))
    played = play(spec, script=Script(tools={"look": [ToolOutput(value=answer)]}))
    verdict = played.pauses[0].verdict
    assert verdict is not None
    assert verdict.approved is None
    assert "cannot be kept" in verdict.reason or "one step may keep" in verdict.reason
    assert played.pauses[0].outputs == {}


def test_a_rule_that_decides_spares_the_check() -> None:
    verdict = verdict_of({"approve_if": RULE, "check": "look"}, expressions={RULE: True})
    assert verdict is not None
    assert verdict.approved


def test_a_check_is_called_once_however_often_the_step_is_entered() -> None:
    spec = v12(sign(auto={"check": "look"}), tools=(a_tool("look"),))
    first = play(spec, script=Script(tools={"look": [ToolOutput(value={"decision": "ask"})]}))
    assert first.pauses[0].outputs == {"sign.check": {"decision": "ask"}}
    again = Situation(input="go", position=Position(outputs=first.pauses[0].outputs))
    taken_over = play(spec, again)
    assert taken_over.calls == []
    assert taken_over.pauses[0].verdict == first.pauses[0].verdict


def test_a_gate_that_opens_again_because_something_changed_asks_a_person_whatever_the_rules_say() -> None:
    spec = v12(a_tool_step(), tools=(asked_for(auto={"approve_if": RULE}),))
    pause = play(spec, script=Script(expressions={RULE: False})).pauses[0]
    stored = decided(pause, True, digest="1:other", key="k-1")
    again = play(spec, Situation(input="go", decision=stored), Script(expressions={RULE: True}))
    assert again.pauses[0].differs_from == stored
    assert again.pauses[0].verdict is None
    assert again.calls == []


def test_a_rule_looks_at_a_branch_that_asks_too() -> None:
    step = a_condition("execute_tool(look)").model_copy(update={"policy": sign(auto={"approve_if": "yes"}).policy})
    played = play(v12(step, tools=(a_tool("look"),)), script=Script(expressions={"trigger.ok": False, "yes": True}))
    verdict = played.pauses[0].verdict
    assert verdict is not None
    assert verdict.approved


def test_a_recorded_request_is_judged_as_well_and_never_waits() -> None:
    spec = v12(sign(mode="record", auto={"check": "look"}), tools=(a_tool("look"),))
    script = Script(tools={"look": [ToolOutput(value={"decision": "approve"})]}, recorded=["k-1"])
    played = play(spec, script=script)
    assert played.line == "S C A C completed"
    assert inner(played.events) == {"sign.check": {"decision": "approve"}}
    assert played.last.output == {"sign": {"recorded": True, "key": "k-1"}}
    assert played.last.inner == ("sign.check",)


def test_what_is_only_recorded_here_has_no_key() -> None:
    played = play(v12(sign(mode="record")), script=Script(recorded=[None]))
    assert played.last.output == {"sign": {"recorded": True}}


def test_a_driver_that_decides_what_is_only_recorded_is_told_so() -> None:
    with pytest.raises(TypeError, match="cannot be answered"):
        play(v12(sign(mode="record")), script=Script(decisions=[True]))
    with pytest.raises(TypeError, match="cannot be answered"):
        play(v12(sign()), script=Script(recorded=[None]))
    assert Recorded(key=None).key is None


def test_a_check_that_does_not_exist_asks_a_person() -> None:
    played = play(v12(sign(auto={"check": "ghost"})))
    verdict = played.pauses[0].verdict
    assert verdict is not None
    assert 'no tool named "ghost"' in verdict.reason
    assert not isinstance(played.last, Failed)


def test_a_gate_that_was_opened_before_asks_no_rule_and_calls_no_check() -> None:
    spec = v12(
        a_tool_step(),
        a_tool_step("then"),
        tools=(asked_for(auto={**BOTH, "check": "look"}), a_tool("look", method="GET")),
    )
    played = play(spec, Situation(input="go", opened=True))
    (pause,) = played.pauses
    assert (pause.verdict, played.calls) == (None, [])
    assert not [effect for effect in played.effects if isinstance(effect, Evaluate) and RULE in effect.sources]


def test_the_gates_behind_it_do() -> None:
    spec = v12(sign("first"), a_tool_step(), tools=(asked_for(auto={"approve_if": RULE}),))
    script = Script(expressions={RULE: False}, decisions=[True])
    played = play(spec, Situation(input="go", opened=True), script)
    assert [effect for effect in played.effects if isinstance(effect, Evaluate) and RULE in effect.sources]
