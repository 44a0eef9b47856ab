"""What an expression can read (engine semantics 11)."""

from __future__ import annotations

import pytest

from tests.engine.specs import spec_of
from workflows.engine.scope import scope, trigger_value
from workflows.engine.situation import Trigger
from workflows.engine.values import NOTHING, Json
from workflows.spec.model import ToolStep


@pytest.mark.parametrize(
    ("input", "value"),
    [
        ('{"id": "A7", "n": 1.0}', {"id": "A7", "n": 1, "headers": {}, "body": {"id": "A7", "n": 1}}),
        ("just words", {"headers": {}, "body": "just words"}),
        ("", {"headers": {}, "body": ""}),
        ("NaN", {"headers": {}, "body": "NaN"}),
        ("[1, 2]", {"headers": {}, "body": [1, 2]}),
        ("null", {"headers": {}, "body": None}),
        ('"text"', {"headers": {}, "body": "text"}),
        ("12", {"headers": {}, "body": 12}),
    ],
)
def test_the_body_is_the_input_as_json_or_as_text(input: str, value: Json) -> None:
    assert trigger_value(Trigger(), input) == value


@pytest.mark.parametrize("body", [{"id": 9}, None, "text", []])
def test_an_explicit_body_wins_over_the_input(body: Json) -> None:
    value = trigger_value(Trigger(body=body), '{"other": 1}')
    assert value["body"] == body
    assert "other" not in value


def test_headers_and_body_hide_fields_of_that_name() -> None:
    body = {"headers": "mine", "body": "mine", "id": 1}
    value = trigger_value(Trigger(headers={"x-a": "b"}, body=body), "")
    assert value == {"headers": {"x-a": "b"}, "body": body, "id": 1}


def test_the_scope_holds_outputs_in_the_order_of_the_steps_then_the_surroundings() -> None:
    spec = spec_of(ToolStep(step="b", tool="t"), ToolStep(step="a", tool="t"), ToolStep(step="empty", tool="t"))
    outputs = {"a": None, "b": {"x": 1}, "empty": NOTHING}
    found = scope(spec, outputs, Trigger(), "raw", {"limit": 5})
    assert found == {
        "b": {"x": 1},
        "a": None,
        "trigger": {"headers": {}, "body": "raw"},
        "input": "raw",
        "vars": {"limit": 5},
    }
    assert list(found) == ["b", "a", "trigger", "input", "vars"]


def test_the_surroundings_win_over_a_step_of_the_same_name() -> None:
    spec = spec_of(*(ToolStep(step=name, tool="t") for name in ("input", "vars", "trigger")))
    found = scope(spec, {"input": 1, "vars": 2, "trigger": 3}, Trigger(), "raw", {})
    assert found == {"trigger": {"headers": {}, "body": "raw"}, "input": "raw", "vars": {}}
