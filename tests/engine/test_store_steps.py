"""`once`, `open` and `close` as the engine walks them: what is asked of the store, and what comes of its answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.scripted import Played, Script, a_spec, a_tool, a_tool_step, an_approval, play
from workflows.engine.effects import (
    ClaimKey,
    CloseIncident,
    IncidentClosed,
    IncidentOpened,
    KeyClaimed,
    KeyRefused,
    OpenIncident,
    ToolOutput,
)
from workflows.engine.events import Completed, Failed, StepCompleted
from workflows.engine.situation import Position, Situation
from workflows.engine.values import NOTHING, Json
from workflows.spec.model import CloseStep, OnceStep, OpenStep, Spec, Step

INCIDENT: dict[str, Json] = {"key": "k", "value": 1, "openedAt": "2026-11-29T10:00:00.000Z", "runId": "r-1"}


def once(**changed: Any) -> OnceStep:
    return OnceStep(**{"step": "first", "key": "k", "ttl": 60, **changed})


def spec_of(*steps: Step) -> Spec:
    return a_spec(*steps, version="1.2", tools=[a_tool()])


def told(played: Played, step: str) -> Any:
    return next(one.output for one in played.events if isinstance(one, StepCompleted) and one.step == step)


def test_the_first_goes_on() -> None:
    script = Script(keys=[KeyClaimed()], tools={"send": [ToolOutput(value="sent")]})
    played = play(spec_of(once(), a_tool_step()), script=script)
    assert played.keys == [ClaimKey(step="first", index=0, key="k", ttl=60)]
    assert played.last == Completed(output={"first": {"first": True}, "go": "sent"})


def test_a_repeat_completes_the_run_there() -> None:
    played = play(spec_of(once(), a_tool_step()), script=Script(keys=[KeyClaimed(holder="r-0")]))
    assert played.last == Completed(output={"first": {"first": False, "run": "r-0"}})
    assert played.line == "S C completed"
    assert played.calls == []


def test_a_repeat_goes_on_where_the_step_says_so() -> None:
    script = Script(keys=[KeyClaimed(holder="r-0")], tools={"send": [ToolOutput(value="sent")]})
    played = play(spec_of(once(on_repeat="continue"), a_tool_step()), script=script)
    assert played.last == Completed(output={"first": {"first": False, "run": "r-0"}, "go": "sent"})


def test_a_repeat_that_was_told_before_still_ends_the_run() -> None:
    position = Position(step_index=0, outputs={"first": {"first": False, "run": "r-0"}})
    played = play(spec_of(once(), a_tool_step()), Situation(input="go", position=position))
    assert (played.line, played.keys, played.calls) == ("S C completed", [], [])


def test_a_key_that_failure_keeps_is_asked_for_as_such() -> None:
    played = play(spec_of(once(release_on_failure=False)), script=Script(keys=[KeyClaimed()]))
    assert played.keys == [ClaimKey(step="first", index=0, key="k", ttl=60, release=False)]


@pytest.mark.parametrize("opened", [True, False])
def test_open(opened: bool) -> None:
    step = OpenStep(step="open", key="a-{{ id }}", value={"who": "{{ name }}", "token": "${TOKEN}"}, ttl=9)
    script = Script(expressions={"id": 7, "name": ["Mei"]}, keys=[IncidentOpened(opened=opened, incident=INCIDENT)])
    played = play(spec_of(step), script=script)
    value = {"who": ["Mei"], "token": "${TOKEN}"}
    assert played.keys == [OpenIncident(step="open", index=0, key="a-7", value=value, ttl=9)]
    assert told(played, "open") == {"opened": opened, "incident": INCIDENT}


@pytest.mark.parametrize(
    ("incident", "output"), [(INCIDENT, {"closed": True, "incident": INCIDENT}), (None, {"closed": False})]
)
def test_close(incident: dict[str, Json] | None, output: Json) -> None:
    step = CloseStep(step="close", key="k")
    played = play(spec_of(step), script=Script(keys=[IncidentClosed(incident=incident)]))
    assert played.keys == [CloseIncident(step="close", index=0, key="k")]
    assert told(played, "close") == output


@pytest.mark.parametrize("value", [7, 1.5, "seven"])
def test_a_key_that_is_a_number_is_its_text(value: Json) -> None:
    played = play(spec_of(once(key="{{ id }}")), script=Script(expressions={"id": value}, keys=[KeyClaimed()]))
    assert played.keys[0].key == str(value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", 'its key "" is empty; a key has 1 to 400 bytes'),
        (" \n", 'its key " \\u000a" is empty'),
        ("a\0b", 'its key "a\\u0000b" cannot be kept'),
        ("a\ud800", "cannot be kept"),
        ("x" * 401, f'its key "{"x" * 60}…" takes 401 bytes; a key has at most 400'),
        ("é" * 201, "takes 402 bytes"),
        (None, "its key must be a text; it is null"),
        (True, "it is a boolean"),
        ([1], "it is a list"),
        ({"a": 1}, "it is an object"),
        (NOTHING, "the expression evaluated to nothing"),
    ],
)
@pytest.mark.parametrize("kind", [OnceStep, OpenStep, CloseStep])
def test_a_bad_key_fails_the_step_and_asks_nobody(kind: Any, value: Json, words: str) -> None:
    step = kind(step="first", key="{{ id }}", **({"ttl": 60} if kind is OnceStep else {}))
    played = play(spec_of(step), script=Script(expressions={"id": value}))
    assert isinstance(played.last, Failed)
    assert played.last.error.startswith('Step "first": ')
    assert words in played.last.error
    assert played.keys == []


@pytest.mark.parametrize("value", ["x" * 400, "é" * 200, " a ", "once:a", "incident:a"])
def test_a_key_of_the_full_length_or_of_an_odd_form_is_asked_for_as_it_is(value: str) -> None:
    played = play(spec_of(once(key="{{ id }}")), script=Script(expressions={"id": value}, keys=[KeyClaimed()]))
    assert played.keys[0].key == value


@pytest.mark.parametrize("value", ["x" * (1024 * 1024), "a\0b"])
def test_a_value_that_cannot_be_kept_is_not_asked_for(value: str) -> None:
    step = OpenStep(step="open", key="k", value="{{ big }}")
    played = play(spec_of(step), script=Script(expressions={"big": value}))
    assert isinstance(played.last, Failed)
    assert "its output" in played.last.error
    assert played.keys == []


def test_what_the_store_refuses_fails_the_step() -> None:
    played = play(spec_of(once()), script=Script(keys=[KeyRefused(reason="no such place")]))
    assert played.last == Failed(step="first", error='Step "first": the store refused the key "k": no such place')


def test_an_answer_of_another_kind_is_an_error_of_the_driver() -> None:
    with pytest.raises(TypeError, match="ClaimKey cannot be answered with IncidentClosed"):
        play(spec_of(once()), script=Script(keys=[IncidentClosed(incident=None)]))


def test_a_step_behind_the_position_is_not_asked_again() -> None:
    position = Position(step_index=1, outputs={"first": {"first": True}})
    played = play(spec_of(once(), an_approval()), Situation(input="go", position=position))
    assert played.keys == []


def test_what_was_done_on_the_store_is_not_done_again_after_an_approval_ended() -> None:
    """The gate is entered again; a close behind it gives what it gave, though nothing is open any more."""
    before = {"closed": True, "incident": INCIDENT}
    steps = (an_approval(), CloseStep(step="close", key="k"), a_tool_step())
    position = Position(step_index=0, outputs={"close": before})
    script = Script(decisions=[True], tools={"send": [ToolOutput(value="sent")]})
    played = play(spec_of(*steps), Situation(input="go", position=position), script)
    assert played.keys == []
    assert told(played, "close") == before
    assert isinstance(played.last, Completed)


def test_of_two_steps_with_one_name_each_is_performed() -> None:
    keys = [KeyClaimed(), KeyClaimed()]
    played = play(spec_of(once(), once(key="l")), script=Script(keys=keys))
    assert [one.key for one in played.keys] == ["k", "l"]
