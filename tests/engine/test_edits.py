"""Changing what waits: within its place and its type, as data that nothing expands (spec 1.2, `editable`)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.policies import asked_for, sign, v12
from tests.engine.scripted import Script, a_tool_step, decided, play
from workflows.engine.editing import EditRefused, edited_outputs
from workflows.engine.effects import ToolOutput
from workflows.engine.situation import Position, Situation
from workflows.engine.values import NOTHING
from workflows.spec.model import Body, ComponentTool, GmailTool, SlackTool, Tool

HOSTILE = "{{ input }} ${SECRET} {{ $env }}"
ENV = {"TOKEN": "tok-canary", "SECRET": "secret-canary"}
OK: dict[str, Any] = {"send": [ToolOutput(value="done")]}
JSON = Body(kind="json", json_={"amount": "{{ input }}", "to": "Bo", "list": [1, "two", None], "flag": True, "n": 2.5})
VALUES = {"input": {"sum": 3, "note": "as given"}}


def http(**changed: Any) -> Tool:
    auth = {"Authorization": "Bearer ${TOKEN}", "X-Note": "plain"}
    return asked_for(**{"headers": auth, "query": {"q": "one"}, "body": JSON, **changed})


def proposed(tool: Tool, edits: dict[str, Any]) -> Any:
    """The gate with these edits of its action, which nobody decided yet."""
    start = Situation(input="go", edits=edits)
    return play(v12(a_tool_step(), tools=(tool,)), start, Script(expressions=VALUES, env=ENV))


def sent(tool: Tool, edits: dict[str, Any]) -> Any:
    """The call as it leaves when the edited action was approved."""
    pause = proposed(tool, edits).pauses[0]
    yes = decided(pause, True, edits=edits)
    script = Script(expressions=VALUES, env=ENV, tools=OK)
    played = play(v12(a_tool_step(), tools=(tool,)), Situation(input="go", decision=yes), script)
    assert played.line == "S C completed", played.last
    return played.calls[0]


@pytest.mark.parametrize(
    ("path", "new"),
    [
        ("action.url", "http://tools.test/other?q=1"),
        ("action.headers.X-Note", HOSTILE),
        ('action.headers["X-Note"]', "x"),
        ("action.query.q", HOSTILE),
        ("action.body.json.to", HOSTILE),
        ("action.body.json.amount", {"sum": 4}),
        ("action.body.json.amount.sum", 4),
        ("action.body.json.amount.note", HOSTILE),
        ("action.body.json.list[0]", 7),
        ("action.body.json.list[1]", HOSTILE),
        ("action.body.json.flag", False),
        ("action.body.json.n", 10**30),
    ],
)
def test_what_is_edited_is_what_is_shown_hashed_and_sent(path: str, new: Any) -> None:
    before, after = proposed(http(), {}).pauses[0], proposed(http(), {path: new}).pauses[0]
    assert after.digest != before.digest
    assert str(new) in str(after.action)
    call = sent(http(), {path: new})
    assert b"secret-canary" not in (call.body or b"")
    assert "secret-canary" not in f"{call.url}{call.headers}"
    if isinstance(new, str) and "body" in path:
        assert new.encode() in call.body.replace(b'\\"', b'"')
    assert ("Authorization", "Bearer tok-canary") in call.headers


@pytest.mark.parametrize(
    ("body", "path", "held"),
    [
        (Body(kind="form", form={"a": "one", "b": "${TOKEN}"}), "action.body.form.a", b"b=tok-canary"),
        (Body(kind="raw", raw="text with ${TOKEN}"), "action.body.raw", b""),
    ],
)
def test_forms_and_raw_texts(body: Body, path: str, held: bytes) -> None:
    call = sent(http(body=body), {path: HOSTILE})
    assert b"secret-canary" not in call.body
    assert held in call.body
    assert b"input" in call.body


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        (SlackTool(name="send", token="${TOKEN}", channel="#ops", text="hi", requires_approval=True), "action.text"),
        (
            GmailTool(name="send", token="${TOKEN}", to="a@x.test", subject="s", body="b", requires_approval=True),
            "action.subject",
        ),
        (
            ComponentTool(
                name="send",
                use="kampong/slack@1.0.0",
                op="post_message",
                with_={"channel": "#ops", "text": "hi"},
                secrets={"token": "${TOKEN}"},
                requires_approval=True,
            ),
            "action.with.text",
        ),
    ],
)
def test_messages(tool: Tool, path: str) -> None:
    new = "a new ${SECRET} text"
    assert new in str(proposed(tool, {path: new}).pauses[0].action)
    call = sent(tool, {path: new})
    assert "secret-canary" not in f"{call.url}{call.headers}{call.body}"
    assert proposed(tool, {path: 3}).last.error.endswith("must stay one, not become a number.")


@pytest.mark.parametrize(
    ("path", "new", "words"),
    [
        ("action.body.json.to", 3, "it is a string and must stay one, not become a number"),
        ("action.body.json.to", None, "not become null"),
        ("action.body.json.flag", 1, "it is a boolean and must stay one"),
        ("action.body.json.n", True, "it is a number and must stay one, not become a boolean"),
        ("action.body.json.n", "2.5", "not become a string"),
        ("action.body.json.list[2]", "x", "it is null and must stay one"),
        ("action.body.json.amount", [3], "it is a mapping and must stay one, not become a list"),
        ("action.url", 3, "not become a number"),
        ("action.headers.X-Note", ["x"], "not become a list"),
        ("action.body.json.ghost", 1, "nothing at this place"),
        ("action.body.json.list[3]", 1, "nothing at this place"),
        ('action.body.json.list["²"]', 1, "nothing at this place"),
        ('action.body.json.amount["²"]', 1, "nothing at this place"),
        ("action.body.json.to.deeper", "x", "nothing at this place"),
        ("action.headers.X-New", "x", "nothing at this place"),
        ("action.query.other", "x", "nothing at this place"),
        ("action.body.form.to", "x", "nothing at this place"),
        ("action.method", "DELETE", "nothing at this place"),
        ("action", {}, "nothing at this place"),
        ("action.body.json", {}, "name a value inside it"),
        ("action.body.json.list", [], "name a value inside it"),
    ],
)
def test_an_edit_that_does_not_fit_fails_the_step_and_asks_nobody(path: str, new: Any, words: str) -> None:
    played = proposed(http(), {path: new})
    assert played.pauses == []
    assert words in played.last.error
    assert played.last.error.startswith('Step "go": the change of action')


def test_a_message_names_what_can_be_changed() -> None:
    tool = SlackTool(name="send", token="${TOKEN}", channel="#ops", text="hi", requires_approval=True)
    assert "channel, text can be changed" in proposed(tool, {"action.token": "x"}).last.error


def test_an_edit_belongs_to_its_step_alone() -> None:
    tools = (http(), asked_for("again", body=JSON))
    spec = v12(a_tool_step(), a_tool_step("then", "again"), tools=tools)
    edits = {"action.body.json.to": "Eve"}
    start = Situation(input="go", edits=edits, position=Position(step_index=0))
    script = Script(expressions=VALUES, env=ENV, tools=OK, decisions=[True])
    played = play(spec, start, script)
    shown: list[Any] = [pause.action for pause in played.pauses]
    assert [action["body"]["json"]["to"] for action in shown] == ["Eve", "Bo"]


def test_an_edit_that_was_not_the_approved_one_is_asked_again() -> None:
    pause = proposed(http(), {"action.body.json.to": "Eve"}).pauses[0]
    other = decided(pause, True, edits={"action.body.json.to": "Mallory"}, key="k-1")
    played = play(
        v12(a_tool_step(), tools=(http(),)), Situation(input="go", decision=other), Script(expressions=VALUES, env=ENV)
    )
    assert played.calls == []
    assert played.pauses[0].differs_from == other


# Outputs of earlier steps --------------------------------------------------------------------------------------

OUTPUTS: dict[str, Any] = {"read": {"text": "one", "rows": [{"n": 1}, {"n": 2}]}, "word": "x", "none": NOTHING}


@pytest.mark.parametrize(
    ("path", "new", "changed"),
    [
        ("read.text", HOSTILE, {"read": {"text": HOSTILE, "rows": [{"n": 1}, {"n": 2}]}}),
        ("read.rows[1].n", 5, {"read": {"text": "one", "rows": [{"n": 1}, {"n": 5}]}}),
        ("word", "y", {"word": "y"}),
        ("action.text", "y", {}),
    ],
)
def test_outputs_change_in_a_copy(path: str, new: Any, changed: dict[str, Any]) -> None:
    assert edited_outputs(OUTPUTS, {path: new}) == {**OUTPUTS, **changed}
    assert OUTPUTS["read"] == {"text": "one", "rows": [{"n": 1}, {"n": 2}]}


@pytest.mark.parametrize(
    ("path", "new", "words"),
    [
        ("read.text", 3, "must stay one"),
        ("ghost.text", "x", 'no output of a step "ghost"'),
        ("read.rows[2].n", 5, "nothing at this place"),
        ('read.rows["²"]', 5, "nothing at this place"),
        ("none", "x", "no output of a step"),
        ("none", {}, "no output of a step"),
        ("none.a", "x", "no output of a step"),
    ],
)
def test_outputs_keep_their_places_and_types(path: str, new: Any, words: str) -> None:
    with pytest.raises(EditRefused, match=words) as refused:
        edited_outputs(OUTPUTS, {path: new})
    assert refused.value.path == path


# What a decider is shown counts, and so does what is not shown ------------------------------------------------


def test_an_edited_output_is_in_the_digest_of_every_gate() -> None:
    for spec in (v12(a_tool_step(), tools=(http(),)), v12(sign())):
        place = Position(outputs={"read": "one"})
        digests = [
            play(spec, Situation(input="go", edits=edits, position=place), Script(expressions=VALUES)).pauses[0].digest
            for edits in ({}, {"read": "two"}, {"read": "three"})
        ]
        assert len(set(digests)) == 3


def test_a_decision_with_edited_outputs_fits_the_gate_that_they_were_approved_at() -> None:
    spec, place = v12(sign()), Position(outputs={"read": "two"})
    pause = play(spec, Situation(input="go", edits={"read": "two"}, position=place), Script()).pauses[0]
    yes = decided(pause, True, edits={"read": "two"})
    assert play(spec, Situation(input="go", decision=yes, position=place), Script()).line == "S C completed"
    other = decided(pause, True, edits={"read": "three"}, key="k-1")
    assert play(spec, Situation(input="go", decision=other, position=place), Script()).pauses[0].differs_from == other


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("action.headers.Authorization", "Basic ${TOKEN}"),
        ("action.body.raw", "now ${TOKEN} first"),
    ],
)
def test_a_reference_is_replaced_with_its_text_or_stays(path: str, kept: str) -> None:
    tool = http(body=Body(kind="raw", raw="text with ${TOKEN}"))
    played = proposed(tool, {path: kept})
    assert played.pauses == []
    assert "${TOKEN} in it is filled in from the environment" in played.last.error
    assert proposed(tool, {path: "plain"}).pauses
    assert proposed(tool, {path: "${OTHER}"}).pauses, "this was never a reference here, and is none now"
