"""What is called because nobody decided in time, and beside a run on a recorded decision (spec 1.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.engine.policies import asked_for, called, inner, resumed, sign, v12
from tests.engine.scripted import Played, Script, a_tool, a_tool_step, an_action, decided, play
from workflows.engine.effects import Decision, Evaluate, Fingerprint, ModelGate, Pause, ToolFailed, ToolOutput
from workflows.engine.events import Completed, Expired, Failed, StepCompleted
from workflows.engine.gates import EXPIRED
from workflows.engine.values import NOTHING
from workflows.spec.model import Guardrails, Spec, VarDecl
from workflows.spec.policy_model import Policy

TELL = a_tool("tell", url="http://tools.test/tell")
OK: dict[str, Any] = {"tell": [ToolOutput(value="told")], "send": [ToolOutput(value={"id": "p-1"})]}


def expired(pause: Pause, tool: str = "tell") -> Decision:
    return decided(pause, (False, EXPIRED), on_expire=tool, digest="1:none")


def gated(**changed: Any) -> Spec:
    """A call that waits for its approval, and would have to be filled to be shown."""
    tool = asked_for(query={"to": "{{ vars.to }}"}, url="http://${HOST}/send", **changed)
    return v12(
        a_tool_step(),
        sign("last"),
        tools=(tool, TELL),
        vars={"to": VarDecl(type="string", default="asha", has_default=True)},
    )


WORDS = {"vars.to": "asha"}


def waiting(spec: Spec) -> Pause:
    return play(spec, script=Script(expressions=WORDS, env={"HOST": "tools.test"})).pauses[0]


def test_the_tool_is_called_and_the_run_ends_expired() -> None:
    spec = gated()
    played = play(spec, resumed(waiting(spec), expired(waiting(spec))), Script(tools=OK))
    assert called(played) == [("go.on_expire", "tell")]
    assert played.line == "S C E"
    assert inner(played.events) == {"go.on_expire": "told"}
    assert played.last == Expired(step="go", error=EXPIRED)


def test_nothing_of_the_gate_itself_is_filled_or_compared() -> None:
    spec = gated()
    played = play(spec, resumed(waiting(spec), expired(waiting(spec))), Script(tools=OK))
    assert not [effect for effect in played.effects if isinstance(effect, Evaluate | Fingerprint)]
    assert played.pauses == []


def test_it_ends_expired_also_when_the_tool_failed_and_says_so() -> None:
    spec = gated()
    failing = {"tell": [ToolFailed(error='Tool "tell": no answer')]}
    played = play(spec, resumed(waiting(spec), expired(waiting(spec))), Script(tools=failing))
    error = f'{EXPIRED}; Step "go": on_expire failed: Tool "tell": no answer'
    assert (played.line, played.last) == ("S E", Expired(step="go", error=error))


def test_what_was_called_is_not_called_again() -> None:
    spec = gated()
    again = resumed(waiting(spec), expired(waiting(spec)), **{"go.on_expire": "told"})
    played = play(spec, again)
    assert (played.calls, played.line) == ([], "S E")


def test_the_decision_is_data_for_its_templates() -> None:
    tell = a_tool("tell", query={"why": "{{ decision.reason }}"})
    spec = v12(sign(), tools=(tell,))
    pause = play(spec).pauses[0]
    played = play(spec, resumed(pause, expired(pause)), Script(tools=OK, expressions={"decision.reason": EXPIRED}))
    (question,) = [effect for effect in played.effects if isinstance(effect, Evaluate)]
    assert question.scope["decision"] == {"approved": False, "reason": EXPIRED, "by": "", "answers": {}}


def test_vars_have_to_resolve_for_it() -> None:
    spec = v12(sign(), tools=(TELL,), vars={"to": VarDecl(type="string", default="${WHO}", has_default=True)})
    pause = play(spec, script=Script(env={"WHO": "asha"})).pauses[0]
    played = play(spec, resumed(pause, expired(pause)), Script(tools=OK))
    assert (played.line, played.calls) == ("S E", [])
    assert played.last.error.startswith(f"{EXPIRED}; ")
    assert "WHO" in played.last.error


def test_behind_a_guardrail_the_step_is_not_told_again() -> None:
    rails = Guardrails(confidence_threshold=0.8, fallback_action="escalate_to_human")
    spec = v12(an_action(confidence_gate=True), sign("last"), guardrails=rails, tools=(TELL,))
    unsure = {"decide": [ModelGate(result="maybe", confidence=0.1)]}
    pause = play(spec, script=Script(models=unsure)).pauses[0]
    played = play(spec, resumed(pause, replace(expired(pause), phase="after")), Script(tools=OK))
    assert called(played) == [("decide.on_expire", "tell")]
    assert (played.line, played.last) == ("C E", Expired(step="decide", error=EXPIRED))


def test_a_tool_that_needs_an_approval_is_not_called_then_either() -> None:
    spec = v12(sign(), tools=(asked_for(),))
    pause = play(spec).pauses[0]
    played = play(spec, resumed(pause, expired(pause, "send")), Script(tools=OK))
    assert played.calls == []
    assert isinstance(played.last, Expired)
    assert "needs an approval itself" in played.last.error


def test_its_idempotency_key_is_its_own() -> None:
    spec = v12(sign(), tools=(TELL,))
    pause = play(spec).pauses[0]
    situation = replace(resumed(pause, expired(pause)), root="r-1")
    headers = dict(play(spec, situation, Script(tools=OK)).calls[0].headers)
    assert headers["Idempotency-Key"] == "r-1-0-on_expire"


# Beside a run --------------------------------------------------------------------------------------------------


def beside(answer: bool, tools: dict[str, Any] = OK, told: bool = False) -> Played:
    """A run that was started on the decision of the second step, which was only recorded."""
    keys = {"approved": "tell", "rejected": "tell"}
    spec = v12(sign("first"), sign("note", mode="record", on_decision=keys), sign("last"), tools=(TELL,))
    pause = play(spec, script=Script(decisions=[True])).pauses[1]
    outputs = {"note.on_decision": "told"} if told else {}
    situation = resumed(pause, decided(pause, (answer, "seen")), **outputs)
    return play(spec, replace(situation, purpose="on_decision"), Script(tools=tools))


@pytest.mark.parametrize("answer", [True, False])
def test_beside_a_run_only_the_tool_is_called(answer: bool) -> None:
    played = beside(answer)
    assert called(played) == [("note.on_decision", "tell")]
    assert played.line == "S C completed"
    assert played.last == Completed(output={"note.on_decision": "told"}, inner=("first",))
    assert [event.step for event in played.events if isinstance(event, StepCompleted)] == ["note.on_decision"]


def test_beside_a_run_a_tool_without_a_value_leaves_nothing() -> None:
    assert beside(True, {"tell": [ToolOutput(value=NOTHING)]}).last.output == {}


def test_beside_a_run_a_failure_is_that_runs_own() -> None:
    played = beside(True, {"tell": [ToolFailed(error="no answer")]})
    assert played.last == Failed(step="note", error='Step "note": on_decision failed: no answer')


def test_beside_a_run_it_is_not_called_again() -> None:
    played = beside(True, told=True)
    assert (played.calls, played.last.output) == ([], {"note.on_decision": "told"})


def test_where_nothing_is_to_be_called_nothing_is() -> None:
    spec = v12(sign(mode="record"), tools=(TELL,))
    pause = play(spec).pauses[0]
    played = play(spec, replace(resumed(pause, decided(pause, True)), purpose="on_decision"))
    assert isinstance(played.last, Failed)
    assert Policy().on_decision.of(approved=True) is None
