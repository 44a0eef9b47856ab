"""Structured output: what is asked, how answers are judged, the one retry (engine semantics 6)."""

from __future__ import annotations

import json

import pytest

from workflows.engine.schema import (
    fill_defaults,
    gate_problem,
    instructions,
    patterns,
    problems,
    retry_prompt,
    structure,
)
from workflows.engine.values import NOTHING, Json

SCHEMA = {
    "type": "object",
    "title": "Triage",
    "required": ["severity", "where"],
    "properties": {
        "severity": {"type": "string", "enum": ["low", "high"], "description": "How bad"},
        "score": {"type": "integer", "minimum": 1, "maximum": 5, "default": 3, "enum": [1, 3, 5]},
        "where": {
            "type": "object",
            "properties": {"city": {"type": "string", "default": "Örebro", "pattern": "^Ö"}, "n": {"type": "number"}},
        },
        "tags": {"type": "array", "items": {"type": "string", "minLength": 2, "pattern": "a"}},
    },
}


def judged(node: Json, value: Json) -> list[str]:
    return problems({"type": "object", "properties": {"x": node}}, {"x": value}, {})


def test_it_asks_for_a_json_object_with_the_whole_schema_indented() -> None:
    text = instructions(SCHEMA)
    first, _, rest = text.partition("\n")
    assert "only a JSON object" in first
    assert "JSON Schema" in first
    assert rest.startswith('{\n  "type": "object",\n  "title": "Triage",')
    assert json.loads(rest) == SCHEMA


def test_the_provider_is_given_the_structure_alone() -> None:
    assert structure(SCHEMA) == {
        "type": "object",
        "properties": {
            "severity": {"type": "string", "description": "How bad", "enum": ["low", "high"]},
            "score": {"type": "integer"},
            "where": {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "number"}}},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["severity", "where"],
    }


def test_defaults_fill_what_is_missing_and_invent_no_object() -> None:
    assert fill_defaults(SCHEMA, {"where": {}, "extra": 1}) == {"where": {"city": "Örebro"}, "extra": 1, "score": 3}
    assert fill_defaults(SCHEMA, {"score": None}) == {"score": None}
    assert fill_defaults(SCHEMA, {"where": "here"}) == {"where": "here", "score": 3}


def test_filling_leaves_list_items_other_answers_and_the_given_value_alone() -> None:
    items = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}}
    schema = {"type": "object", "properties": {"rows": items}}
    assert fill_defaults(schema, {"rows": [{}]}) == {"rows": [{}]}
    assert fill_defaults(SCHEMA, [1]) == [1]
    given: Json = {"where": {}}
    fill_defaults(SCHEMA, given)
    assert given == {"where": {}}


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("string", ["", "x"], [1, None, True, [], {}]),
        ("number", [0, -1.5, 3.0], ["1", True, None, float("inf"), float("nan"), 10**400, []]),
        ("integer", [0, 3.0, -7, 1e21], [1.5, "1", False, None, float("inf"), -(10**400)]),
        ("boolean", [True, False], [0, 1, "true", None]),
    ],
)
def test_each_type_takes_its_own_values_only(kind: str, good: list[Json], bad: list[Json]) -> None:
    for value in good:
        assert judged({"type": kind}, value) == []
    for value in bad:
        (problem,) = judged({"type": kind}, value)
        assert problem.startswith("output.x: ")
        assert kind in problem


@pytest.mark.parametrize("value", [{}, "x", None, 1])
def test_a_list_is_a_list(value: Json) -> None:
    assert judged({"type": "array", "items": {"type": "string"}}, value) == ["output.x: must be a list (array)"]


@pytest.mark.parametrize("value", [[1], "x", None, 1, True, NOTHING])
def test_an_answer_that_is_no_object_has_that_one_problem(value: Json) -> None:
    assert problems(SCHEMA, value, {}) == ["output: must be an object"]


def test_all_problems_come_together_missing_names_first_then_in_declared_order() -> None:
    answer = {"tags": ["b", 5, "aa"], "score": 9, "where": {"city": "Oslo", "n": "1"}, "extra": None}
    found = {("^Ö", "Oslo"): False, ("a", "b"): False, ("a", "aa"): True}
    assert problems(SCHEMA, answer, found) == [
        "output.severity: is required",
        "output.score: must be at most 5",
        "output.score: must be one of 1, 3, 5",
        "output.where.city: must match the pattern ^Ö",
        "output.where.n: must be a number",
        "output.tags[0]: must have at least 2 characters",
        "output.tags[0]: must match the pattern a",
        "output.tags[1]: must be a string",
    ]


def test_a_wrong_type_is_the_only_problem_of_a_value() -> None:
    node = {"type": "string", "minLength": 3, "pattern": "x", "enum": ["abc"]}
    assert judged(node, 5) == ["output.x: must be a string"]


@pytest.mark.parametrize(
    ("node", "value", "word"),
    [
        ({"type": "number", "minimum": 1.5}, 1.4, "at least 1.5"),
        ({"type": "number", "maximum": 5.0}, 5.1, "at most 5"),
        ({"type": "string", "minLength": 3}, "ab", "at least 3"),
        ({"type": "string", "maxLength": 1}, "ab", "at most 1"),
        ({"type": "string", "enum": ["low", "high"]}, "urgent", "low, high"),
        ({"type": "number", "enum": [1, 2.0]}, 3, "1, 2"),
        ({"type": "boolean", "enum": [True]}, False, "one of true"),
    ],
)
def test_a_broken_rule_says_what_is_allowed(node: Json, value: Json, word: str) -> None:
    (problem,) = judged(node, value)
    assert problem.startswith("output.x: ")
    assert word in problem


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ({"type": "number", "minimum": 1, "maximum": 1}, 1.0),
        ({"type": "string", "minLength": 1, "maxLength": 1}, "😀"),
        ({"type": "number", "enum": [3]}, 3.0),
        ({"type": "string", "minimum": 5}, "a"),
    ],
)
def test_bounds_are_inclusive_and_rules_of_other_types_mean_nothing(node: Json, value: Json) -> None:
    assert judged(node, value) == []


def test_it_lists_the_patterns_to_search_once_each_and_only_for_texts() -> None:
    answer = {"where": {"city": "Oslo"}, "tags": ["b", 5, "b", "c"]}
    assert patterns(SCHEMA, answer) == (("^Ö", "Oslo"), ("a", "b"), ("a", "c"))
    assert patterns(SCHEMA, {"where": 5, "tags": {}}) == ()
    assert patterns(SCHEMA, [1]) == ()


@pytest.mark.parametrize("confidence", [0, 1, 0.5, 1.0])
def test_a_gate_takes_a_confidence_from_nought_to_one(confidence: Json) -> None:
    assert gate_problem({"confidence": confidence}) is None


@pytest.mark.parametrize(
    "answer", [{}, *({"confidence": value} for value in (-0.1, 1.1, True, "1", None, float("nan")))]
)
def test_a_gate_refuses_any_other_confidence(answer: Json) -> None:
    assert (gate_problem(answer) or "").startswith("output.confidence: ")


def test_the_retry_shows_the_problems_and_the_answer() -> None:
    text = retry_prompt("THE PROMPT", ["output.a: is required", "output.b: must be a number"], {"b": "é", "c": 3.0})
    assert text.startswith("THE PROMPT\n")
    assert "output.a: is required; output.b: must be a number" in text
    assert '{"b":"é","c":3}' in text
    assert text.index("output.a") < text.index('{"b"') < text.index("again")


def test_the_retry_says_when_there_was_no_answer_and_shows_null_as_one() -> None:
    assert "none" in retry_prompt("P", ["x"], NOTHING)
    assert "Previous answer: null" in retry_prompt("P", ["x"], None)
