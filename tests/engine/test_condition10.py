"""Conditions of 1.0 specs (engine semantics 7)."""

from __future__ import annotations

import pytest

from workflows.engine.condition10 import ConditionError, evaluate
from workflows.engine.values import NOTHING

OUTPUTS = {
    "s": {
        "n": 42,
        "f": 3.0,
        "neg": -1.5,
        "t": "gold",
        "digits": "42",
        "hex": "0x10",
        "blank": "  ",
        "yes": True,
        "no": False,
        "null": None,
        "word": "null",
        "list": [1],
        "map": {"a": 1},
        "quoted": "it's",
        "inf": "Infinity",
        "big": 9007199254740993,
    },
    "rows": ["zero", 1],
    "word": "ok",
    "gone": NOTHING,
}


@pytest.mark.parametrize(
    "condition",
    [
        "s.n == 42",
        "  s.n==42  ",
        "\ns.n == 42\n",
        "s.n == 42.0",
        "s.f == 3",
        "s.neg == -1.5",
        "s.t == gold",
        's.t == "gold"',
        "s.t == 'gold'",
        's.digits == "42"',
        "s.yes == true",
        "s.no == false",
        "s.word == null",
        's.quoted == "it\'s"',
        "s.quoted == it's",
        "rows.0 == zero",
        "rows.1 == 1",
        "s.big == 9007199254740993",
    ],
)
def test_a_field_equals_a_literal_of_its_own_type(condition: str) -> None:
    assert evaluate(condition, OUTPUTS) is True
    assert evaluate(condition.replace("==", "!="), OUTPUTS) is False


@pytest.mark.parametrize(
    "condition",
    [
        's.n == "42"',
        "s.digits == 42",
        "s.yes == 1",
        's.yes == "true"',
        "s.null == null",
        "s.no == 0",
        "s.t == Gold",
        "s.nope == anything",
        "s.list == 1",
        "s.map == 1",
        "rows.2 == zero",
        "rows.00 == zero",
        "rows.nope == zero",
        "word.ok == ok",
        "word.0 == o",
        "gone.x == 1",
        "s.n == 42 and s.t == gold",
        "s.n === 42",
        "s.big == 9007199254740992",
        "s.t == 'gold\"",
        "s.t == '",
    ],
)
def test_what_is_not_strictly_equal_differs(condition: str) -> None:
    assert evaluate(condition, OUTPUTS) is False
    assert evaluate(condition.replace("==", "!=", 1), OUTPUTS) is True


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("s.n > 41", True),
        ("s.n >= 42", True),
        ("s.n<=42", True),
        ("s.n < 42", False),
        ("s.digits > 41", True),
        ('s.n > " 41.5e0 "', True),
        ("s.hex == 16", False),
        ("s.hex >= 16", True),
        ("s.hex <= 16", True),
        ("s.yes >= 1", True),
        ("s.yes > false", True),
        ("s.no >= 0", True),
        ("s.null >= 0", True),
        ("s.null <= 0", True),
        ("s.blank >= 0", True),
        ('s.n > ""', True),
        ("s.inf > 1", True),
        ("s.n < Infinity", True),
        ("s.n > -Infinity", True),
        ("s.neg < .5", True),
    ],
)
def test_order_compares_both_sides_as_numbers(condition: str, answer: bool) -> None:
    assert evaluate(condition, OUTPUTS) is answer


@pytest.mark.parametrize("left", ["s.t", "s.nope", "s.map", "s.list", "word.x", "gone.x", "rows.0"])
@pytest.mark.parametrize("sign", [">", ">=", "<", "<="])
@pytest.mark.parametrize("right", ["100", '"a"', "a", "1_0", "٣", "0x", "inf", "nan"])
def test_order_is_false_where_a_side_is_no_number(left: str, sign: str, right: str) -> None:
    assert evaluate(f"{left} {sign} {right}", OUTPUTS) is False


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "s.flag",
        "s.a.b == 1",
        "s == 1",
        "s.n = 42",
        "s.n == ",
        "s.n >=",
        "re-port.x == 1",
        "s.n == 1\n2",
        "é.x == 1",
    ],
)
def test_what_is_no_comparison_is_refused_quoting_it_and_the_shape(condition: str) -> None:
    with pytest.raises(ConditionError) as refusal:
        evaluate(condition, OUTPUTS)
    assert f'"{condition}"' in str(refusal.value)
    assert "STEP.FIELD OP LITERAL" in str(refusal.value)


def test_a_step_that_has_not_run_is_named_with_a_hint_at_the_order() -> None:
    with pytest.raises(ConditionError) as refusal:
        evaluate("later.x == 1", OUTPUTS)
    assert "later.x == 1" in refusal.value.message
    assert '"later"' in refusal.value.message
    assert "before" in refusal.value.message


def test_a_number_too_long_for_an_integer_is_still_compared() -> None:
    assert evaluate("s.n < " + "9" * 5_000, OUTPUTS) is True
    assert evaluate("s.n == " + "9" * 5_000, OUTPUTS) is False
    assert evaluate("s.n > 0x" + "f" * 500, OUTPUTS) is False
