"""The order of events on every path of engine semantics 2.4, and what each path costs nobody."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.scripted import (
    Script,
    a_condition,
    a_spec,
    a_tool,
    a_tool_step,
    an_action,
    an_approval,
    play,
)
from workflows.engine import jsontext
from workflows.engine.effects import (
    ExpressionFailed,
    ModelFailed,
    ModelGate,
    ModelObject,
    ModelText,
    ToolFailed,
    ToolOutput,
)
from workflows.engine.events import Completed, Failed, Rejected
from workflows.engine.gates import REJECTED
from workflows.engine.situation import Situation
from workflows.engine.values import NOTHING
from workflows.spec.model import Guardrails, VarDecl

ESCALATE = Guardrails(confidence_threshold=0.7, fallback_action="escalate_to_human")
NO_FALLBACK = Guardrails(confidence_threshold=0.7)
SHAPE = {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}}
GATE = an_action(confidence_gate=True)
UNSURE = {"decide": [ModelGate(result={"a": 1}, confidence=0.5)]}
OK = [ToolOutput(value={"ok": True})]
BROKEN = [ToolFailed(error="Tool send: refused")]
APPROVED_TOOL = a_tool(requires_approval=True)
CANNOT = ExpressionFailed(index=0, reason="cannot", position=3)

PATHS: dict[str, tuple[Any, Script, str]] = {
    "action succeeds": (a_spec(an_action()), Script(models={"decide": [ModelText(text="x")]}), "S C completed"),
    "query template fails": (
        a_spec(an_action(query="{{ trigger.q }}")),
        Script(expressions={"trigger.q": NOTHING}),
        "S F",
    ),
    "model fails": (a_spec(an_action()), Script(models={"decide": [ModelFailed(error="down")]}), "S F"),
    "schema fails twice": (
        a_spec(an_action(output_schema=SHAPE)),
        Script(models={"decide": [ModelObject(value={}), ModelObject(value=NOTHING)]}),
        "S F",
    ),
    "guardrail, approved": (
        a_spec(GATE, guardrails=ESCALATE),
        Script(models=UNSURE, decisions=[True]),
        "S C A completed",
    ),
    "guardrail, rejected": (a_spec(GATE, guardrails=ESCALATE), Script(models=UNSURE, decisions=[False]), "S C A R"),
    "guardrail without fallback": (a_spec(GATE, guardrails=NO_FALLBACK), Script(models=UNSURE), "S C F"),
    "condition fails": (
        a_spec(a_condition("execute_tool(send)")),
        Script(expressions={"trigger.ok": CANNOT}),
        "S F",
    ),
    "unknown branch action": (a_spec(a_condition("page_someone")), Script(expressions={"trigger.ok": True}), "S F"),
    "unknown tool": (a_spec(a_condition("execute_tool(send)")), Script(expressions={"trigger.ok": True}), "S F"),
    "branch asks, approved": (
        a_spec(a_condition("execute_tool(send)")),
        Script(expressions={"trigger.ok": False}, decisions=[True]),
        "S A C completed",
    ),
    "branch asks, rejected": (
        a_spec(a_condition("execute_tool(send)")),
        Script(expressions={"trigger.ok": False}, decisions=[False]),
        "S A R",
    ),
    "branch calls a tool": (
        a_spec(a_condition("execute_tool(send)"), tools=[a_tool()]),
        Script(expressions={"trigger.ok": True}, tools={"send": OK}),
        "S C completed",
    ),
    "tool without approval fails": (
        a_spec(a_tool_step(), tools=[a_tool()]),
        Script(tools={"send": BROKEN}),
        "S F",
    ),
    "tool approved": (
        a_spec(a_tool_step(), tools=[APPROVED_TOOL]),
        Script(tools={"send": OK}, decisions=[True]),
        "S A C completed",
    ),
    "tool approved and fails": (
        a_spec(a_tool_step(), tools=[APPROVED_TOOL]),
        Script(tools={"send": BROKEN}, decisions=[True]),
        "S A F",
    ),
    "tool rejected": (a_spec(a_tool_step(), tools=[APPROVED_TOOL]), Script(decisions=[False]), "S A R"),
    "tool template fails": (
        a_spec(a_tool_step(), tools=[a_tool(url="http://t.test/{{ trigger.x }}", requires_approval=True)]),
        Script(expressions={"trigger.x": NOTHING}),
        "S F",
    ),
    "approval approved": (a_spec(an_approval()), Script(decisions=[True]), "S A C completed"),
    "approval rejected": (a_spec(an_approval(), an_action()), Script(decisions=[False]), "S A R"),
    "approval message fails": (
        a_spec(an_approval(message="{{ trigger.x }}")),
        Script(expressions={"trigger.x": CANNOT}),
        "S F",
    ),
    "vars fail": (a_spec(an_action(), vars={"limit": VarDecl(type="number")}), Script(), "F"),
}


@pytest.mark.parametrize("path", PATHS)
def test_every_path_tells_its_events_in_order(path: str) -> None:
    spec, script, line = PATHS[path]
    assert play(spec, script=script).line == line


def test_a_rejection_carries_the_reason_given_or_the_default() -> None:
    spec = a_spec(an_approval())
    assert play(spec, script=Script(decisions=[(False, "wrong customer")])).last == Rejected(
        step="review", reason="wrong customer"
    )
    assert play(spec, script=Script(decisions=[(False, "")])).last.reason == REJECTED


def test_an_approval_step_keeps_the_reason_and_a_branch_does_not() -> None:
    spec = a_spec(an_approval(), a_condition("page_someone"))
    played = play(
        spec, script=Script(expressions={"trigger.ok": False}, decisions=[(True, "fine"), (True, "fine too")])
    )
    assert played.last == Completed(
        output={"review": {"approved": True, "reason": "fine"}, "route": {"approved": True}}
    )


def test_an_empty_reason_is_no_reason() -> None:
    assert play(a_spec(an_approval()), script=Script(decisions=[(True, "")])).last.output == {
        "review": {"approved": True}
    }


def test_a_pause_says_what_kind_it_is_and_only_a_tool_names_a_tool() -> None:
    spec = a_spec(
        an_approval(message="Send it?"), a_condition("x"), a_tool_step(), tools=[APPROVED_TOOL], guardrails=ESCALATE
    )
    script = Script(expressions={"trigger.ok": False}, tools={"send": OK}, decisions=[True, True, True])
    pauses = play(spec, script=script).pauses
    assert [(pause.kind, pause.phase, pause.tool) for pause in pauses] == [
        ("approval", "before", None),
        ("guardrail", "before", None),
        ("tool", "before", "send"),
    ]
    assert pauses[0].reason == "Send it?"
    assert "route" in pauses[1].reason
    assert "send" in pauses[2].reason
    assert pauses[2].outputs == {"review": {"approved": True}, "route": {"approved": True}}


def test_a_guardrail_asks_about_an_output_that_is_nested_as_deep_as_any_may_be() -> None:
    deep = jsontext.loads("[" * 200 + "]" * 200)
    unsure = Script(models={"decide": [ModelGate(result=deep, confidence=0.5)]})
    played = play(a_spec(GATE, guardrails=ESCALATE), script=unsure)
    assert (played.line, played.pauses[0].action) == ("S C A", deep)


def test_a_guardrail_pause_comes_after_its_step_and_names_both_numbers() -> None:
    played = play(a_spec(GATE, guardrails=ESCALATE), script=Script(models=UNSURE))
    (pause,) = played.pauses
    assert (pause.kind, pause.phase, pause.outputs) == ("guardrail", "after", {"decide": {"a": 1, "confidence": 0.5}})
    assert all(word in pause.reason for word in ("decide", "0.5", "0.7"))


@pytest.mark.parametrize(("confidence", "fires"), [(0.69, True), (0.7, False), (1, False), (None, False)])
def test_the_guardrail_fires_only_strictly_below_the_threshold(confidence: float | None, fires: bool) -> None:
    models = {"decide": [ModelGate(result={}, confidence=confidence)]}
    assert bool(play(a_spec(GATE, guardrails=ESCALATE), script=Script(models=models)).pauses) is fires


def test_a_guardrail_without_fallback_fails_with_both_numbers() -> None:
    failed = play(a_spec(GATE, guardrails=NO_FALLBACK), script=Script(models=UNSURE)).last
    assert failed.step == "decide"
    assert all(word in failed.error for word in ("0.5", "0.7", "none is set"))


def test_a_step_without_a_value_is_missing_from_the_final_output() -> None:
    spec = a_spec(a_tool_step(), an_action("after"), tools=[a_tool()])
    script = Script(tools={"send": [ToolOutput(value=NOTHING)]}, models={"after": [ModelText(text="y")]})
    assert play(spec, script=script).last == Completed(output={"after": {"text": "y"}})


def test_missing_vars_fail_the_run_before_any_step_and_without_one() -> None:
    spec = a_spec(an_action(), vars={"limit": VarDecl(type="number"), "region": VarDecl(type="string")})
    failed = play(spec).last
    assert isinstance(failed, Failed)
    assert failed.step is None
    assert "vars.limit" in failed.error
    assert "vars.region" in failed.error


def test_vars_read_the_environment_once_and_reach_expressions() -> None:
    spec = a_spec(
        an_action(query="{{ vars.city }}"),
        vars={"city": VarDecl(type="string", default="${CITY}", has_default=True)},
    )
    script = Script(
        env={"CITY": "Lüneburg"}, expressions={"vars.city": "Lüneburg"}, models={"decide": [ModelText(text="x")]}
    )
    played = play(spec, Situation(input="go"), script)
    assert played.effects[0].names == ("CITY",)
    assert played.effects[1].scope["vars"] == {"city": "Lüneburg"}
    assert "Query: Lüneburg" in played.questions[0].prompt
