"""Bombs: each ends as a clear failure within its limit, beside an evaluation that is not held up (scenario 68)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.counts import count
from workflows.adapters.evaluator import Evaluator
from workflows.engine.effects import Evaluate, Evaluated, ExpressionFailed, Matched, MatchPatterns

#: The limit of a second, what a kill adds to it, and much room for a busy machine.
WITHIN = 30

BOMBS = {
    "a range of ten million": ("[1..10000000]", "200000 items"),
    "a range of one too many": ("$count([1..200001])", "200000 items"),
    "a huge pad": ('$pad("x", 400000000)', "1000000 characters"),
    "a huge pad to the left": ('$pad("x", -400000000)', "1000000 characters"),
    "tail recursion": ("($f := function($x){ $f($x + 1) }; $f(0))", "longer than 1 second"),
    "recursion": ("($f := function($x){ 1 + $f($x + 1) }; $f(0)) > 0", "400 deep"),
    "a growing reduce": ("$reduce([1..200000], function($a, $b){$a & $b & $a})", "1000000 characters"),
    "a doubled text": (
        "($d := function($s, $n){$n = 0 ? $s : $d($s & $s, $n - 1)}; $d('xxxxxxxxxx', 40))",
        "characters",
    ),
    "a long slow path": ("[1..200000].($ + 1 + 1)", "longer than 1 second"),
    "a product of lists": ("[1..1000].([1..200000])", ""),
    "shared branches": ("($d := function($o, $n){$n = 0 ? $o : $d({'a': $o, 'b': $o}, $n - 1)}; $d({'a': 1}, 40))", ""),
    "a text of shared branches": (
        "($d := function($o, $n){$n = 0 ? $o : $d({'a': $o, 'b': $o}, $n - 1)}; $string($d({'a': 1}, 40)))",
        "",
    ),
    "a joined text": ("($x := $pad('x', 1000000); $join([1..100000] ~> $map(function($v){$x})))", ""),
    "many positions in a filter": ("($x := [1..100000]; $count([1..50000][$x]))", "longer than 1 second"),
    "a list grown in a loop": ("$count($reduce([1..100000], $append))", "longer than 1 second"),
    "a comparison of long texts": ("($x := $pad('x', 1000000); $count([1..100000][$x = $x & '']))", "1 second"),
    "a variable looked up from afar": ("(" * 300 + "$count([1..200000].($abs($) + $abs($)))" + ")" * 300, "1 second"),
    "all below, of shared branches": (
        "($d := function($o, $n){$n = 0 ? $o : $d({'a': $o, 'b': $o}, $n - 1)}; $count($d({'a': 1}, 40).**))",
        "",
    ),
    "a list in a list in a list": ("$reduce([1..20000], function($a, $b){[[$a]]})", ""),
    "a replacement": ("$replace($pad('a', 1000000, 'a'), 'a', $pad('b', 1000000, 'b'))", ""),
    "a sort of one too many": ("$sort([1..10001])", "10000 items"),
    "distinct of one too many": ("$distinct([1..10001])", "10000 items"),
    "doubling operators": ("(" * 60 + "x" + " ?? x)" * 60, "longer than 1 second"),
    "nested brackets": ("(" * 1500 + "1" + ")" * 1500, "nested"),
    "nested lists": ("[" * 1900 + "]" * 1900, "nested"),
    "a huge number": ("$power(9, 9999)", "out of range"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_fails_within_the_limit_and_delays_nobody(evaluator: Evaluator, name: str) -> None:
    source, words = BOMBS[name]
    outcome, took, slowest = beside_a_healthy_run(evaluator, lambda: ask(evaluator, source))
    assert isinstance(outcome, ExpressionFailed), outcome
    assert words in outcome.reason
    assert took < WITHIN
    assert slowest < max(5.0, took)


def test_a_pattern_that_backtracks_for_ever_is_stopped(evaluator: Evaluator) -> None:
    effect = MatchPatterns(pairs=(("a", "a"), ("^(a+)+$", "a" * 40 + "!")))
    outcome, took, slowest = beside_a_healthy_run(evaluator, lambda: evaluator.match(effect))
    assert isinstance(outcome, ExpressionFailed)
    assert "1 second" in outcome.reason
    assert outcome.index == 1
    assert took < WITHIN
    assert slowest < max(5.0, took)
    assert evaluator.match(MatchPatterns(pairs=(("a", "a"),))) == Matched(found=(True,))


def test_the_sources_of_a_batch_share_one_limit(evaluator: Evaluator) -> None:
    source = "$count([1..4000].($ + 1))"
    started = time.monotonic()
    outcome = evaluator.evaluate(Evaluate(sources=(source,) * 400, scope={}))
    assert time.monotonic() - started < WITHIN
    assert isinstance(outcome, ExpressionFailed)
    assert outcome.index > 0
    assert "1 second" in outcome.reason


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("$count([1..200000])", 200_000),
        ("$length($pad('x', 1000000))", 1_000_000),
        ("$count($sort([1..10000]))", 10_000),
        ("$count($distinct([1..10000]))", 10_000),
        ("($f := function($n){$n <= 1 ? 1 : 1 + $f($n - 1)}; $f(130))", 130),
        ("$length($string('" + "x" * 3900 + "'))", 3_900),
    ],
)
def test_what_is_just_inside_a_limit_is_answered(evaluator: Evaluator, source: str, expected: int) -> None:
    assert ask(evaluator, source) == Evaluated(values=(expected,))


def test_a_large_scope_is_no_offence(evaluator: Evaluator) -> None:
    scope = {"rows": [{"a": number, "b": "text " * 10, "c": None} for number in range(5_000)]}
    assert evaluator.evaluate(Evaluate(sources=("$count(rows[c = null])",), scope=scope)) == Evaluated(values=(5_000,))


def test_memory_used_up_by_one_expression_is_there_for_the_next() -> None:
    alone = Evaluator(children=1)
    try:
        for _ in range(count(2, 3)):
            assert isinstance(ask(alone, BOMBS["a product of lists"][0]), ExpressionFailed)
            assert ask(alone, "$count([1..200000])") == Evaluated(values=(200_000,))
    finally:
        alone.close()


def test_failures_leave_nothing_behind_in_the_child() -> None:
    alone = Evaluator(children=1)
    try:
        for _ in range(60):
            assert isinstance(ask(alone, "($x := [1..200000]; $y := $reverse($x); $x + 1)"), ExpressionFailed)
        (pid,) = alone.pids()
        status = Path(f"/proc/{pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
        assert int(resident) < 200 * 1024
    finally:
        alone.close()


def ask(evaluator: Evaluator, source: str) -> Evaluated | ExpressionFailed:
    return evaluator.evaluate(Evaluate(sources=(source,), scope={"x": 1}))


def beside_a_healthy_run(evaluator: Evaluator, bomb: Callable[[], Any]) -> tuple[Any, float, float]:
    """The bomb's outcome, its duration, and the longest of the healthy evaluations made meanwhile."""
    ask(evaluator, "x")
    over = threading.Event()
    durations: list[float] = []

    def run_on() -> None:
        while True:
            started = time.monotonic()
            assert ask(evaluator, "x + 1") == Evaluated(values=(2,))
            durations.append(time.monotonic() - started)
            if over.wait(0.01):
                return

    healthy = threading.Thread(target=run_on)
    healthy.start()
    started = time.monotonic()
    outcome = bomb()
    took = time.monotonic() - started
    over.set()
    healthy.join()
    return outcome, took, max(durations)
