"""What expressions yield: JSONata's answers, undefined apart from null, errors with their place."""

from __future__ import annotations

from typing import Any

import pytest

from workflows.adapters.evaluator import Evaluator
from workflows.engine.effects import Evaluate, Evaluated, ExpressionFailed, Matched, MatchPatterns
from workflows.engine.values import NOTHING

SCOPE: dict[str, Any] = {
    "n": None,
    "five": 5,
    "fraction": 3.0,
    "long": 12345678901234567,
    "name": "é",
    "items": [{"p": 5, "n": "x"}, {"p": 20, "n": "b"}],
    "mixed": [1, None, 2],
    "inner": {"x": {"y": None}},
}


def value(evaluator: Evaluator, source: str, scope: dict[str, Any] | None = None) -> Any:
    outcome = evaluator.evaluate(Evaluate(sources=(source,), scope=SCOPE if scope is None else scope))
    assert isinstance(outcome, Evaluated), outcome
    return outcome.values[0]


def failure(evaluator: Evaluator, source: str) -> ExpressionFailed:
    outcome = evaluator.evaluate(Evaluate(sources=(source,), scope=SCOPE))
    assert isinstance(outcome, ExpressionFailed), outcome
    return outcome


@pytest.mark.parametrize(
    "source", ["missing", "n.y", "items[p > 100].n", "missing < 1", "$x", "inner.x.z", "$lookup(inner, 'z')"]
)
def test_a_source_that_selects_nothing_yields_nothing(evaluator: Evaluator, source: str) -> None:
    assert value(evaluator, source) is NOTHING


@pytest.mark.parametrize("source", ["n", "null", "inner.x.y", "mixed[1]", "**.y", "[null][0]"])
def test_null_stays_null(evaluator: Evaluator, source: str) -> None:
    assert value(evaluator, source) is None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("-5 ?? 99", -5),
        ("-5 ?: 3", -5),
        ("[1,2,3][-1] ?? 42", 3),
        ("items[-1] ?? {}", {"p": 20, "n": "b"}),
        ("missing ?? 7", 7),
        ("items[p > 10].n", "b"),
        ("items[p > 10].n[]", ["b"]),
        ("items.n", ["x", "b"]),
        ("items[-1].n", "b"),
        ("missing = 1", False),
        ("missing != 1", False),
        ("missing and true", False),
        ("$exists(n)", True),
        ("n = null", True),
        ("$count(null)", 1),
        ("$count(mixed)", 3),
        ("$map(mixed, function($v){$v})", [1, None, 2]),
        ("$type(n)", "null"),
        ("n & 'x'", "nullx"),
        ("long", 12345678901234567),
        ("$string(long)", "12345678901234567"),
        ("$string(fraction)", "3"),
        ("$string(1e21)", "1e+21"),
        ("1e20 * 10 & ''", "1e+21"),
        ("0.1 + 0.2 & ''", "0.3"),
        ("$string({'a': name, 'b': [1, null]})", '{"a":"é","b":[1,null]}'),
        ("$string([1], true)", "[\n  1\n]"),
        ("5.5 % 2", 1.5),
        ("1 in [true]", False),
        ("'b' in items.n", True),
        ("$distinct([1, true, 1, '1', null, null])", [1, True, "1", None]),
        ("$sort(['b', 'a'])", ["a", "b"]),
        ("$sort(items, function($l, $r){$l.p < $r.p}).n", ["b", "x"]),
        ("$sort([{'k':1,'v':'a'},{'k':1,'v':'b'}], function($l,$r){$l.k > $r.k}).v", ["a", "b"]),
        ("items^(>p).n", ["b", "x"]),
        ("$number('0x1F') + $number('1.5e1')", 46),
        ("'\\ud83d\\ude00'", "😀"),
        ("inner ~> |x|{'z': 1}|", {"x": {"y": None, "z": 1}}),
        ("$clone(inner)", {"x": {"y": None}}),
        ("$lowercase('GROẞ')", "groß"),
        ("($f := function($n){$n <= 1 ? 1 : $n * $f($n - 1)}; $f(20))", 2432902008176640000),
    ],
)
def test_it_answers_as_jsonata_does(evaluator: Evaluator, source: str, expected: Any) -> None:
    found = value(evaluator, source)
    assert found == expected
    assert type(found) is type(expected) or isinstance(found, int | float)


@pytest.mark.parametrize(
    ("source", "position", "words"),
    [
        ("a = = 1", 5, "="),
        ("1/0", 2, "out of range"),
        ("'x' + 1", 5, "must evaluate to a number"),
        ("true and ('a' < 1)", 15, "same data type"),
        ("$number('abc')", 8, "abc"),
        ("$sum(null)", 5, "array"),
        ("$sort([3, 'a'])", 6, "array of strings"),
        ("$foo()", 5, "foo is not a function"),
        ("$error('no stock')", 7, "no stock"),
        ("-name", None, "cannot be negated"),
        ("$toMillis('zz')", 10, "ISO 8601"),
        ("$toMillis('2026-02-30')", 10, "does not fit"),
        ("'\\ud83d'", None, "surrogate"),
    ],
)
def test_a_failure_says_what_and_where(evaluator: Evaluator, source: str, position: int | None, words: str) -> None:
    found = failure(evaluator, source)
    assert words in found.reason
    assert found.position == position
    assert found.index == 0


@pytest.mark.parametrize(
    "source", ["$now()", "$map([1], $millis)", "($n := $random; 1)", "$eval('1')", "[1] ~> $shuffle"]
)
def test_it_refuses_what_is_not_the_same_twice(evaluator: Evaluator, source: str) -> None:
    assert "not available" in failure(evaluator, source).reason


@pytest.mark.parametrize("source", ["", "  ", "/a+/", "$match('a', /a/)", "a" * 4001])
def test_it_refuses_empty_long_and_regular_expressions(evaluator: Evaluator, source: str) -> None:
    assert "expression" in failure(evaluator, source).reason


@pytest.mark.parametrize(
    "source", ["$sum", "function($x){$x}", "{'f': $sum}", "[$sum]", "$sum ~> $string", "$substring(?, 1)"]
)
def test_a_function_is_no_result(evaluator: Evaluator, source: str) -> None:
    assert "function" in failure(evaluator, source).reason


def test_a_batch_answers_in_order_and_names_the_source_that_failed(evaluator: Evaluator) -> None:
    outcome = evaluator.evaluate(Evaluate(sources=("five", "n", "missing"), scope=SCOPE))
    assert outcome == Evaluated(values=(5, None, NOTHING))
    outcome = evaluator.evaluate(Evaluate(sources=("five", "1/0", "five"), scope=SCOPE))
    assert isinstance(outcome, ExpressionFailed)
    assert outcome.index == 1


def test_nothing_stays_from_one_evaluation_to_the_next(evaluator: Evaluator) -> None:
    assert value(evaluator, "$x := 5") == 5
    assert value(evaluator, "$x") is NOTHING
    for number in range(3):
        assert value(evaluator, "a + 1", {"a": number}) == number + 1


def test_a_cached_expression_does_not_age(evaluator: Evaluator) -> None:
    source = "($y := a; $map([1..3], function($v){$v * $y}))"
    assert value(evaluator, source, {"a": 2}) == [2, 4, 6]
    assert value(evaluator, source, {"a": 3}) == [3, 6, 9]


def test_patterns_are_ecmascript_and_found_anywhere(evaluator: Evaluator) -> None:
    pairs = (("(?<year>\\d{4})", "in 2026"), ("^b", "ab"), ("(?<=a+)b", "aab"), ("é", "café"))
    assert evaluator.match(MatchPatterns(pairs=pairs)) == Matched(found=(True, False, True, True))


def test_a_pattern_that_cannot_be_read_is_named_by_its_index(evaluator: Evaluator) -> None:
    outcome = evaluator.match(MatchPatterns(pairs=(("a", "a"), ("(", "a"))))
    assert isinstance(outcome, ExpressionFailed)
    assert outcome.index == 1
    assert "pattern" in outcome.reason


def test_no_sources_and_no_pairs_need_no_child() -> None:
    unused = Evaluator()
    assert unused.evaluate(Evaluate(sources=(), scope={})) == Evaluated(values=())
    assert unused.match(MatchPatterns(pairs=())) == Matched(found=())
    assert unused.pids() == []
