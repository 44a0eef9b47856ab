"""Running a tool: the order of its parts; data stays data, secrets stay references (engine semantics 13, 10.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine.scripted import Script, a_condition, a_spec, a_tool, a_tool_step, an_approval, play
from workflows.engine import jsontext
from workflows.engine.effects import (
    AskPerson,
    CallTool,
    Evaluate,
    ExpressionFailed,
    Fingerprint,
    HttpCall,
    ReadEnvironment,
    ToolOutput,
)
from workflows.engine.situation import Position, Situation
from workflows.engine.values import NOTHING
from workflows.spec.model import Body, ComponentTool, FailureRule, GmailTool, Response, SlackTool

OK = [ToolOutput(value={"ok": True})]
SECRET = "s3cr3t-canary"
HOSTILE = "${TOKEN} $${TOKEN} {input} {{ input }} {go} costs ${5}"


def call_of(tool: Any, script: Script | None = None, **spec: Any) -> HttpCall:
    script = script or Script()
    played = play(a_spec(a_tool_step(), tools=[tool], **spec), script=Script(**{**vars(script), "tools": {"send": OK}}))
    assert played.line.endswith("completed"), played.last
    return played.calls[0]


def test_templates_come_first_then_the_person_then_the_environment_then_the_call() -> None:
    tool = a_tool(
        url="https://${HOST}/{{ trigger.n }}", headers={"Authorization": "Bearer ${TOKEN}"}, requires_approval=True
    )
    script = Script(
        expressions={"trigger.n": 1}, env={"HOST": "t.test", "TOKEN": "x"}, tools={"send": OK}, decisions=[True]
    )
    effects = play(a_spec(a_tool_step(), tools=[tool]), script=script).effects
    assert [type(effect) for effect in effects] == [Evaluate, Fingerprint, AskPerson, ReadEnvironment, CallTool]
    assert effects[1] == Fingerprint(names=("HOST",))
    assert effects[3] == ReadEnvironment(names=("HOST", "TOKEN"))


def test_all_expressions_of_a_tool_are_evaluated_together() -> None:
    tool = a_tool(
        url="http://t.test/{{ a }}",
        headers={"X": "{{ b }}"},
        query={"q": "{{ c }}"},
        body=Body(kind="raw", raw="{{ d }}", content_type="text/{{ e }}"),
        failure_when=(FailureRule(path="ok", condition="equals", equals="{{ f }}", message_path="{{ g }}"),),
    )
    values = {"a": 1, "b": True, "c": [1], "d": None, "e": "csv", "f": False, "g": "error"}
    played = play(a_spec(a_tool_step(), tools=[tool]), script=Script(expressions=values, tools={"send": OK}))
    (evaluate,) = [effect for effect in played.effects if isinstance(effect, Evaluate)]
    assert [source.strip() for source in evaluate.sources] == list("abcdefg")
    (call,) = played.calls
    assert call.url == "http://t.test/1?q=%5B1%5D"
    assert call.headers == (("X", "true"), ("Content-Type", "text/csv"))
    assert call.body == b"null"
    assert call.failure_when == ({"path": "ok", "equals": False, "message_path": "error", "retryable": False},)


def test_a_failed_expression_names_step_cause_position_and_the_cut_expression() -> None:
    source = "x" * 200
    tool = a_tool(url=f"http://t.test/{{{{   {source} }}}}", requires_approval=True)
    failed = ExpressionFailed(index=0, reason="no such thing", position=7)
    played = play(a_spec(a_tool_step(), tools=[tool]), script=Script(expressions={source: failed}))
    assert played.pauses == []
    assert all(word in played.last.error for word in ('"go"', "no such thing", "character 7"))
    assert played.last.error.endswith(f": {'x' * 120}")


@pytest.mark.parametrize(
    ("value", "words"), [(NOTHING, "nothing"), ("yes", "a string"), (1, "a number"), (None, "null"), ([], "a list")]
)
def test_a_condition_must_be_true_or_false(value: Any, words: str) -> None:
    played = play(a_spec(a_condition("execute_tool(x)")), script=Script(expressions={"trigger.ok": value}))
    assert all(word in played.last.error for word in ('"route"', words, "trigger.ok"))


# Data stays data ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["url", "header", "query", "json", "deep json", "form", "raw"])
def test_data_that_looks_like_a_reference_arrives_unchanged_in_1_1(where: str) -> None:
    tools: dict[str, Any] = {
        "url": {"url": "http://t.test/{{ d }}"},
        "header": {"headers": {"X": "{{ d }}"}},
        "query": {"query": {"x": "{{ d }}"}},
        "json": {"body": Body(kind="json", json_={"x": "{{ d }}", "y": "a {{ d }}"})},
        "deep json": {"body": Body(kind="json", json_={"x": "{{ deep }}"})},
        "form": {"body": Body(kind="form", form={"x": "{{ d }}"})},
        "raw": {"body": Body(kind="raw", raw="{{ d }}")},
    }
    script = Script(expressions={"d": HOSTILE, "deep": {HOSTILE: [HOSTILE]}}, env={"TOKEN": SECRET})
    call = call_of(a_tool(**tools[where]), script)
    encoded = "%24%7BTOKEN%7D+%24%24%7BTOKEN%7D+%7Binput%7D+%7B%7B+input+%7D%7D+%7Bgo%7D+costs+%24%7B5%7D"
    arrived: dict[str, tuple[Any, Any]] = {
        "url": (call.url, f"http://t.test/{HOSTILE}"),
        "header": (call.headers, (("X", HOSTILE),)),
        "query": (call.url, f"http://tools.test/send?x={encoded}"),
        "json": (call.body, jsontext.dumps({"x": HOSTILE, "y": f"a {HOSTILE}"}).encode()),
        "deep json": (call.body, jsontext.dumps({"x": {HOSTILE: [HOSTILE]}}).encode()),
        "form": (call.body, f"x={encoded}".encode()),
        "raw": (call.body, HOSTILE.encode()),
    }
    found, expected = arrived[where]
    assert found == expected
    assert call.secrets == frozenset()


def test_data_that_looks_like_a_reference_arrives_unchanged_in_1_0() -> None:
    tool = a_tool(body=Body(kind="json", json_={"x": "{input}", "y": "{{ input }} ${TOKEN} {nope}"}))
    played = play(
        a_spec(a_tool_step(), tools=[tool], version="1.0"),
        Situation(input=HOSTILE),
        Script(env={"TOKEN": "tok"}, tools={"send": OK}),
    )
    assert json.loads(played.calls[0].body or b"") == {"x": HOSTILE, "y": f"{HOSTILE} tok {{nope}}"}


def test_an_environment_value_is_not_read_again() -> None:
    call = call_of(a_tool(headers={"X": "${A}"}), Script(env={"A": "${B} {{ x }} {input}", "B": "no"}), version="1.0")
    assert call.headers == (("X", "${B} {{ x }} {input}"),)


# Secrets stay references --------------------------------------------------------------------------------------

SECRETIVE = a_tool(
    url="https://${HOST}/x",
    headers={"Authorization": "Bearer ${TOKEN}", "X-Plain": "$${TOKEN}"},
    body=Body(kind="json", json_={"key": "${TOKEN}", "data": "{{ d }}"}),
    requires_approval=True,
)


def test_a_person_is_shown_the_action_with_references_and_without_absent_parts() -> None:
    script = Script(expressions={"d": 3}, env={"HOST": "t.test", "TOKEN": SECRET})
    (pause,) = play(a_spec(a_tool_step(), tools=[SECRETIVE]), script=script).pauses
    assert pause.action == {
        "action": "http_request",
        "tool": "send",
        "method": "POST",
        "url": "https://${HOST}/x",
        "headers": {"Authorization": "Bearer ${TOKEN}", "X-Plain": "${TOKEN}"},
        "body": {"json": {"key": "${TOKEN}", "data": 3}},
    }


def test_secrets_are_in_no_event_no_pause_and_no_error() -> None:
    env = {"HOST": "host-canary.test", "TOKEN": SECRET}
    script = Script(expressions={"d": "x"}, env=env, tools={"send": OK}, decisions=[True])
    played = play(a_spec(a_tool_step(), tools=[SECRETIVE]), script=script)
    assert SECRET in str(played.calls[0].headers)
    kept = repr(played.events) + repr(played.pauses) + repr(played.effects)
    assert SECRET not in kept
    assert "host-canary" not in kept


def test_a_secret_does_not_reach_the_digest_and_a_switched_host_does() -> None:
    def digest(**env: str) -> str:
        script = Script(expressions={"d": 1}, env={"HOST": "a", "TOKEN": "t", **env})
        return play(a_spec(a_tool_step(), tools=[SECRETIVE]), script=script).pauses[0].digest

    assert digest() == digest(TOKEN="another")
    assert digest() != digest(HOST="another")


def test_data_that_spells_a_reference_has_another_digest_than_the_reference() -> None:
    def digest(value: str) -> str:
        tool = a_tool(headers={"X": value}, requires_approval=True)
        script = Script(expressions={"d": "${TOKEN}"})
        return play(a_spec(a_tool_step(), tools=[tool]), script=script).pauses[0].digest

    assert len({digest("${TOKEN}"), digest("{{ d }}")}) == 2
    assert digest("$${TOKEN}") == digest("{{ d }}")


@pytest.mark.parametrize("env", [{}, {"TOKEN": ""}])
def test_a_missing_variable_is_found_after_the_approval_and_nothing_is_sent(env: dict[str, str]) -> None:
    tool = a_tool(headers={"Authorization": "Bearer ${TOKEN}"}, requires_approval=True)
    played = play(a_spec(a_tool_step(), tools=[tool]), script=Script(env=env, decisions=[True]))
    assert played.line == "S A F"
    assert "TOKEN" in played.last.error
    assert played.calls == []


# What cannot run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (a_tool(method="GET", body=Body(kind="raw", raw="x")), ("send", "GET")),
        (a_tool(extract="a", response=Response(mode="text")), ("send", "extract", "text")),
        (ComponentTool(name="send", use="acme/mailer@1.4.0", op="send"), ("send", "acme/mailer@1.4.0")),
        (SlackTool(name="send", token="${T}", channel=" ", text="t"), ("send", "channel")),
        (GmailTool(name="send", token="${T}", to="a", subject="b\nBcc: x", body="c"), ("send", "subject")),
    ],
)
def test_a_tool_that_cannot_run_fails_before_anybody_is_asked(tool: Any, words: tuple[str, ...]) -> None:
    asked = tool.model_copy(update={"requires_approval": True})
    played = play(a_spec(a_tool_step(), tools=[asked]))
    assert played.line == "S F"
    assert all(word in played.last.error for word in words)


def test_an_unknown_tool_is_named() -> None:
    assert '"nope"' in play(a_spec(a_tool_step(tool="nope"))).last.error


@pytest.mark.parametrize(
    "branch", ["execute_tool( send )", "execute_tool(send) ", "execute_tool(send)x", "ask", "töol"]
)
def test_a_branch_of_another_form_is_quoted_with_the_two_that_are_known(branch: str) -> None:
    played = play(a_spec(a_condition(branch), tools=[a_tool()]), script=Script(expressions={"trigger.ok": True}))
    assert played.line == "S F"
    assert all(words in played.last.error for words in (f'"{branch}"', "request_human_approval", "execute_tool(NAME)"))


def test_the_first_tool_of_a_name_counts() -> None:
    tools = [a_tool(requires_approval=True), a_tool()]
    assert play(a_spec(a_tool_step(), tools=tools)).line == "S A"


def test_what_a_person_cannot_be_shown_fails_instead_of_pausing() -> None:
    spec = a_spec(an_approval(message="{{ d }}"))
    assert play(spec, script=Script(expressions={"d": "half \ud800"})).line == "S F"


# Outputs ------------------------------------------------------------------------------------------------------


def test_an_output_over_the_limit_fails_with_size_and_limit() -> None:
    script = Script(tools={"send": [ToolOutput(value="é" * 600_000)]})
    failed = play(a_spec(a_tool_step(), tools=[a_tool()]), script=script).last
    assert "1200002" in failed.error
    assert "1048576" in failed.error


@pytest.mark.parametrize("value", [float("nan"), "\ud800", "a\x00b"])
def test_an_output_that_is_no_strict_json_fails_naming_the_place(value: Any) -> None:
    script = Script(tools={"send": [ToolOutput(value={"rows": [value]})]})
    failed = play(a_spec(a_tool_step(), tools=[a_tool()]), script=script).last
    assert "rows[0]" in failed.error


def test_1_0_reads_outputs_of_earlier_steps() -> None:
    spec = a_spec(
        an_approval(), a_tool_step(), tools=[a_tool(url="http://t.test/{review.approved}/{gone.x}")], version="1.0"
    )
    position = Position(step_index=1, outputs={"review": {"approved": True}})
    played = play(spec, Situation(input="go", position=position), Script(tools={"send": OK}))
    assert played.calls[0].url == "http://t.test/true/{gone.x}"
