"""JSON text: how values print, what is read, what is refused (engine semantics 1, design 4)."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given

from tests.engine.strategies import json_values
from workflows.engine import jsontext
from workflows.engine.jsontext import NotJson
from workflows.engine.values import NOTHING, Json


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (3, "3"),
        (3.0, "3"),
        (-7, "-7"),
        (0.5, "0.5"),
        (-0.0, "0"),
        (0.1 + 0.2, "0.30000000000000004"),
        (12345678901234567890, "12345678901234567890"),
        (1e15, "1000000000000000"),
        (1e16, "10000000000000000"),
        (-1.5e16, "-15000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-1.25e21, "-1.25e+21"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (0.0001, "0.0001"),
        (0.00001, "0.00001"),
        (0.0000012, "0.0000012"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-1.5e-9, "-1.5e-9"),
        (5e-324, "5e-324"),
    ],
)
def test_it_prints_numbers_as_ecmascript_does(number: int | float, text: str) -> None:
    assert jsontext.number_text(number) == text
    assert jsontext.dumps(number) == text
    assert jsontext.as_text(number) == text
    assert jsontext.dumps({"a": [number]}) == '{"a":[' + text + "]}"


def test_it_prints_compact_text_in_the_order_written_with_other_scripts_as_themselves() -> None:
    value = {"b": 'café "x"', "a": {"text": "line\nbreak"}, "n": [1, 2.0, True, None, 0.5], "e": {}, "l": []}
    expected = r'{"b":"café \"x\"","a":{"text":"line\nbreak"},"n":[1,2,true,null,0.5],"e":{},"l":[]}'
    assert jsontext.dumps(value) == expected


@pytest.mark.parametrize("fraction", [0.5, 2.0, 1e-7])
def test_it_leaves_out_entries_that_hold_nothing_and_keeps_null(fraction: float) -> None:
    assert jsontext.dumps({"a": NOTHING, "b": None, "c": fraction}).startswith('{"b":null,"c":')
    assert jsontext.canonical({"c": NOTHING, "b": fraction, "a": None}).startswith('{"a":null,"b":')
    assert jsontext.dumps_pretty({"a": NOTHING}) == "{}"


def test_it_indents_by_two_blanks_for_people() -> None:
    value = {"a": [1, {"é": 2.0}], "e": {}, "l": [], "t": "x"}
    assert jsontext.dumps_pretty(value) == (
        '{\n  "a": [\n    1,\n    {\n      "é": 2\n    }\n  ],\n  "e": {},\n  "l": [],\n  "t": "x"\n}'
    )


@pytest.mark.parametrize(
    ("value", "text"), [("as is", "as is"), (True, "true"), (None, "null"), ({"a": [1.0]}, '{"a":[1]}'), ([], "[]")]
)
def test_a_value_inside_a_text_is_itself_or_json(value: Json, text: str) -> None:
    assert jsontext.as_text(value) == text


@given(json_values())
def test_what_is_printed_is_read_again_as_the_same(value: Json) -> None:
    text = jsontext.dumps(value)
    assert jsontext.same(jsontext.loads(text), value)
    assert jsontext.dumps(jsontext.loads(text)) == text
    assert jsontext.same(jsontext.loads(jsontext.dumps_pretty(value)), value)
    assert jsontext.same(json.loads(text), value)


@given(json_values(), json_values())
def test_equal_values_have_one_canonical_text(a: Json, b: Json) -> None:
    assert jsontext.canonical(a) == jsontext.canonical(jsontext.loads(jsontext.dumps(a)))
    assert jsontext.same(a, b) or jsontext.canonical(a) != jsontext.canonical(b)
    assert jsontext.canonical({"x": a, "y": b}) == jsontext.canonical({"y": b, "x": a})


@given(json_values())
def test_whatever_is_json_passes_the_check(value: Json) -> None:
    jsontext.check(value)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity", "1e999", "[-1e999]"])
def test_it_reads_no_numbers_that_json_has_not(text: str) -> None:
    with pytest.raises(NotJson):
        jsontext.loads(text)


@pytest.mark.parametrize(
    "text", ["", "{", "'a'", "[1,]", "{a: 1}", "01", "+1", "\ufeff1", "1 2", '"\n"', "nul", "1_000"]
)
def test_it_reads_nothing_that_is_not_json(text: str) -> None:
    with pytest.raises(NotJson, match="not JSON"):
        jsontext.loads(text)


@pytest.mark.parametrize("text", [r'"\ud800"', r'["a\uDFFF"]', r'"\u0000"', r'{"\u0000": 1}', '"\ud800"'])
def test_it_reads_no_half_characters_and_no_nul(text: str) -> None:
    with pytest.raises(NotJson):
        jsontext.loads(text)


def test_it_reads_what_only_looks_like_half_a_character() -> None:
    assert jsontext.loads(r'["\ud83d\ude00", "\\ud800"]') == ["😀", "\\ud800"]


def test_it_reads_whole_fractions_as_integers_and_keeps_every_digit() -> None:
    values = jsontext.loads("[3.0, 3e0, 12345678901234567890123, 0.50]")
    assert values == [3, 3, 12345678901234567890123, 0.5]
    assert [type(value) for value in values] == [int, int, int, float]


@pytest.mark.parametrize("depth", [201, 5_000, 200_000])
def test_it_refuses_what_is_nested_too_deep(depth: int) -> None:
    with pytest.raises(NotJson, match="200"):
        jsontext.loads("[" * depth + "]" * depth)


def test_it_reads_two_hundred_levels_and_many_brackets_in_a_text() -> None:
    assert jsontext.loads("[" * 200 + "]" * 200)
    assert jsontext.loads('"' + "[" * 10_000 + '"')


def test_an_integer_longer_than_python_reads_is_refused_and_not_raised_as_something_else() -> None:
    with pytest.raises(NotJson):
        jsontext.loads("9" * 5_000)
    with pytest.raises(NotJson, match="too large"):
        jsontext.check({"n": 10**5_000})


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [1, {"b c": float("nan")}]}, 'a[1]["b c"]'),
        ([float("inf")], "[0]"),
        ({"a": {"b": "x\x00"}}, "a.b"),
        ({"a": "\ud800"}, "a"),
        ({"a": {"\udfff": 1}}, "a"),
        ({"a": {1: 2}}, "a"),
        ({"a": (1, 2)}, "a"),
        ({"a": {1, 2}}, "a"),
        ({"a": b"x"}, "a"),
        ({"a": NOTHING}, "a"),
        (object(), ""),
    ],
)
def test_the_check_names_the_place(value: Json, path: str) -> None:
    with pytest.raises(NotJson) as refusal:
        jsontext.check(value)
    assert refusal.value.path == path
    assert refusal.value.reason
    str(refusal.value).encode()


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": object()}, {1: "a"}, NOTHING, [NOTHING], b"x"])
def test_what_is_no_json_is_not_printed(value: Json) -> None:
    for printed in (jsontext.dumps, jsontext.canonical, jsontext.dumps_pretty, jsontext.as_text):
        with pytest.raises(NotJson):
            printed(value)


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        (True, 1, False),
        (0, False, False),
        (3, 3.0, True),
        (0.0, -0.0, True),
        (1e20, 100000000000000000000, True),
        (10**400, 1.5, False),
        ("1", 1, False),
        (None, False, False),
        (None, NOTHING, False),
        (NOTHING, NOTHING, True),
        ([1, [True]], [1.0, [True]], True),
        ([1, [True]], [1.0, [1]], False),
        ([1], [1, 2], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": None}, False),
        ({"a": None}, {}, False),
        ({}, [], False),
    ],
)
def test_equality_is_that_of_json(a: Json, b: Json, answer: bool) -> None:
    assert jsontext.same(a, b) is answer
    assert jsontext.same(b, a) is answer


def test_a_megabyte_prints_in_no_time() -> None:
    rows = [{"id": row, "name": f"Zoë {row}", "tags": ["a", "b"], "price": row + 0.25} for row in range(15_000)]
    started = time.process_time()
    text = jsontext.dumps(rows)
    assert len(text) > 900_000
    assert time.process_time() - started < 1
