"""Strict in, the same value out (design 4; scenarios 27 to 30)."""

from __future__ import annotations

import decimal
import enum
import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.errors import NotJson
from statestore.jsontext import MAX_DIGITS, MAX_NESTING, dumps, loads, number_text

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5), max_leaves=30
)


def as_stored(value: Any) -> Any:
    """The documented mapping: a fraction is the number that its shortest text names; all else stays."""
    if isinstance(value, float):
        return json.loads(number_text(value))
    if isinstance(value, list):
        return [as_stored(item) for item in value]
    if isinstance(value, dict):
        return {key: as_stored(item) for key, item in value.items()}
    return value


def shape(value: Any) -> str:
    """A text that tells true from 1, 3 from 3.0, and one key order from another."""
    return repr(value)


@given(VALUES)
def test_every_json_value_comes_back(value: Any) -> None:
    text = dumps(value)
    assert shape(loads(text)) == shape(as_stored(value))
    assert dumps(loads(text)) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_fraction_changes_its_value(number: float) -> None:
    assert float(loads(dumps(number))) == number


@given(st.integers())
def test_whole_numbers_keep_all_digits(number: int) -> None:
    assert dumps(number) == str(number)
    assert loads(dumps(number)) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (3.0, "3"), (-0.0, "0"), (0.0, "0"), (0.5, "0.5"), (-7.25, "-7.25"), (1e20, "100000000000000000000"),
        (1e21, "1e+21"), (-1.5e300, "-1.5e+300"), (1e-6, "0.000001"), (1e-7, "1e-7"), (1.5e-9, "1.5e-9"),
        (1e16, "10000000000000000"), (123456789012345680000.0, "123456789012345680000"), (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)  # fmt: skip
def test_fractions_print_as_json_prints_them(number: float, text: str) -> None:
    assert dumps(number) == text


def test_text_is_compact_ordered_and_keeps_characters() -> None:
    assert dumps({"b": [1, True, None], "a": 'é"\n\u2028'}) == '{"b":[1,true,null],"a":"é\\"\\n\u2028"}'
    assert dumps([[], {}, ""]) == '[[],{},""]'


def test_the_literal_text_of_an_escaped_nul_survives() -> None:
    assert loads(dumps("\\u0000")) == "\\u0000"


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, "$"),
        ([1, math.inf], "$[1]"),
        ({"a": {"b-c": [-math.inf]}}, "$.a.b-c[0]"),
        ({"a": "x\0"}, "$.a"),
        ({"a": "\ud800"}, "$.a"),
        ({"a": {"\udfff": 1}}, "$.a"),
        ({"odd key": (1,)}, '$["odd key"]'),
        ({1: "a"}, "$"),
        ({None: "a"}, "$"),
        ([{1, 2}], "$[0]"),
        ([b"x"], "$[0]"),
        ([decimal.Decimal(1)], "$[0]"),
        ([datetime(2026, 1, 1, tzinfo=UTC)], "$[0]"),
        ([Colour.RED], "$[0]"),
    ],
    ids=lambda case: ascii(case)[:20],
)
def test_what_json_cannot_keep_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(NotJson) as refused:
        dumps(value)
    assert refused.value.path == path


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_kept_up_to_the_limit_and_refused_beyond() -> None:
    assert loads(dumps(nested(MAX_NESTING))) == nested(MAX_NESTING)
    for depth in (MAX_NESTING + 1, 2000):
        with pytest.raises(NotJson, match="nested"):
            dumps(nested(depth))


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with pytest.raises(NotJson, match="nested"):
        dumps(loop)


def test_the_longest_whole_number_comes_back() -> None:
    longest = 10**MAX_DIGITS - 1
    assert loads(dumps(longest)) == longest
    assert loads(dumps(-longest)) == -longest
    with pytest.raises(NotJson) as refused:
        dumps([longest + 1])
    assert refused.value.path == "$[0]"


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
def test_a_constant_that_is_no_json_is_refused_when_read(text: str) -> None:
    with pytest.raises(NotJson):
        loads(text)
