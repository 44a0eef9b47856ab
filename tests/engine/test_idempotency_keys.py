"""The key by which the receiver of a call can tell a repeat (spec 1.2, Requests)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.policies import asked_for, sign, v12
from tests.engine.scripted import Script, a_spec, a_tool, a_tool_step, decided, play
from workflows.engine.effects import CallTool, ToolOutput
from workflows.engine.situation import Position, Situation
from workflows.spec.model import Body, HttpTool, SlackTool, Tool

ROOT = "11111111-1111-4111-8111-111111111111"
OK: dict[str, Any] = {name: [ToolOutput(value={"decision": "ask"})] * 3 for name in ("send", "tell", "look")}


def situation(**more: Any) -> Situation:
    return Situation(input="go", root=ROOT, **more)


def keys(spec: Any, start: Situation, **script: Any) -> dict[str, list[str]]:
    """The keys that each call carried."""
    script.setdefault("tools", OK)
    played = play(spec, start, Script(**script))
    return {
        effect.step: [text for name, text in effect.call.headers if name.lower() == "idempotency-key"]
        for effect in played.effects
        if isinstance(effect, CallTool)
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_call_that_changes_something_carries_the_root_and_the_step(method: str) -> None:
    spec = v12(a_tool_step(), a_tool_step("then"), tools=(a_tool(method=method),))
    assert keys(spec, situation()) == {"go": [f"{ROOT}-0"], "then": [f"{ROOT}-1"]}


def test_a_call_that_only_reads_carries_none() -> None:
    assert keys(v12(a_tool_step(), tools=(a_tool(method="GET"),)), situation()) == {"go": []}


def test_a_message_carries_one_too() -> None:
    tool = SlackTool(name="send", token="${T}", channel="#ops", text="hello")
    assert keys(v12(a_tool_step(), tools=(tool,)), situation(), env={"T": "x"}) == {"go": [f"{ROOT}-0"]}


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_earlier_versions_send_what_they_always_sent(version: str) -> None:
    spec = a_spec(a_tool_step(), version=version, tools=(a_tool(),))
    assert keys(spec, situation()) == {"go": []}


@pytest.mark.parametrize("name", ["Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY"])
def test_the_authors_own_header_stays(name: str) -> None:
    assert keys(v12(a_tool_step(), tools=(a_tool(headers={name: "mine"}),)), situation()) == {"go": ["mine"]}


def test_each_call_of_one_step_has_its_own() -> None:
    tools: tuple[Tool, ...] = (
        asked_for(auto={"check": "look"}, on_decision={"approved": "tell"}),
        a_tool("look"),
        a_tool("tell"),
    )
    found = keys(v12(a_tool_step(), tools=tools), situation(), decisions=[True])
    assert found == {
        "go.check": [f"{ROOT}-0-check"],
        "go.on_decision": [f"{ROOT}-0-on_decision"],
        "go": [f"{ROOT}-0"],
    }


def test_what_is_called_on_another_decision_has_another() -> None:
    spec = v12(sign(on_decision={"approved": "tell"}), tools=(a_tool("tell"),))
    pause = play(spec).pauses[0]
    for reopens, end in ((0, ""), (2, "-2")):
        decision = decided(pause, True, reopens=reopens)
        assert keys(spec, situation(decision=decision)) == {"sign.on_decision": [f"{ROOT}-0-on_decision{end}"]}


def test_it_is_the_same_whenever_the_step_is_entered() -> None:
    spec = v12(sign("ask"), a_tool_step(), tools=(a_tool(),))
    again = situation(position=Position(step_index=1, outputs={"ask": {"approved": True}}))
    assert keys(spec, again)["go"] == keys(spec, situation(), decisions=[True])["go"] == [f"{ROOT}-1"]


def test_it_is_no_part_of_what_is_shown_and_approved() -> None:
    def pause_of(start: Situation) -> Any:
        body = Body(kind="json", json_={"amount": 1})
        tool: HttpTool = asked_for(body=body)
        return play(v12(a_tool_step(), tools=(tool,)), start).pauses[0]

    one, other = pause_of(situation()), pause_of(Situation(input="go", root="another"))
    assert one.digest == other.digest
    assert ROOT not in str(one.action)
    assert "dempotency" not in str(one.action)


def test_a_run_without_a_root_sends_none() -> None:
    assert keys(v12(a_tool_step(), tools=(a_tool(),)), Situation(input="go")) == {"go": []}


def test_a_chain_that_was_bound_to_a_changed_spec_repeats_no_key_of_before() -> None:
    spec = v12(a_tool_step(), tools=(a_tool(),))
    made = [keys(spec, situation(rebinds=times))["go"] for times in (0, 1, 2)]
    assert made == [[f"{ROOT}-0"], [f"{ROOT}-r1-0"], [f"{ROOT}-r2-0"]]
    assert keys(spec, Situation(input="go", rebinds=1)) == {"go": []}
