"""The limits of engine semantics 8 at their numbers; counted and not clocked, so the same on a busy machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import regress

from tests.counts import count
from workflows.adapters.evaluator import Evaluator
from workflows.engine.effects import Evaluate, Evaluated, ExpressionFailed, Matched, MatchPatterns

#: Counts down in nine steps a turn, by calls in tail position.
COUNTDOWN = "($f := function($n){{$n = 0 ? 'done' : $f($n - 1)}}; $f({turns}))"
SIXTY_PERCENT = COUNTDOWN.format(turns=66_000)
OVER = COUNTDOWN.format(turns=112_000)
OUT_OF_STEPS = "it takes longer than 1 second, the limit (1000000 steps)"


def ask(evaluator: Evaluator, source: str) -> Evaluated | ExpressionFailed:
    return evaluator.evaluate(Evaluate(sources=(source,), scope={"long": "x" * 999_999, "rows": [[0] * 100_000] * 2}))


#: Processes that take all the time they get. In the everyday suites the others run meanwhile and do so too.
BUSY = count(1, 4)


@contextmanager
def a_busy_machine() -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("inside", "outside", "words"),
    [
        ("'" + "x" * 3_998 + "'", "'" + "x" * 3_999 + "'", "4000"),
        ("(" * 399 + "1" + ")" * 399, "(" * 400 + "1" + ")" * 400, "400 deep"),
        ("$length($pad('', 1000000))", "$length($pad('', 1000001))", "1000000 characters"),
        ("$length(long & 'x')", "$length(long & 'xx')", "1000000 characters"),
        ("$length($join([long, 'x']))", "$length($join([long, 'xx']))", "1000000 characters"),
        ("$length($join([long, ''], 'x'))", "$length($join([long, ''], 'xx'))", "1000000 characters"),
        ("$length($replace(long, 'x', 'yy', 1))", "$length($replace(long, 'x', 'yy', 2))", "1000000 characters"),
        ("$length($string([$substring(long, 4)]))", "$length($string([$substring(long, 2)]))", "1000000 characters"),
        ("$count([1..200000])", "$count([1..200001])", "200000 items"),
        ("$count([[1..199999], 1])", "$count([[1..199999], 1][[0..9]]) + $count([1..200001])", "200000 items"),
        ("$count([1..100000] ~> $append([1..100000]))", "$count([1..100000] ~> $append([0..100000]))", "200000 items"),
        ("$count([rows[0], rows[1]])", "$count($append([rows[0], rows[1]], 1))", "200000 items"),
        ("$count(({'a': rows}).*)", "$count(({'a': rows, 'b': 1}).*)", "200000 items"),
        ("$count(rows.$)", "$count(($append(rows, [[1]])).($))", "200000 items"),
        ("$count($split($pad('', 200000), ''))", "$count($split($pad('', 200001), ''))", "200000 items"),
        ("$count($sort([1..10000]))", "$count($sort([0..10000]))", "$sort was given more than 10000 items"),
        ("$count($sort([1..9], $boolean))", "$sort([0..10000], function($a, $b){$a > $b})", "10000 items"),
        ("$count($distinct([1..10000]))", "$count($distinct([0..10000]))", "$distinct was given more than 10000"),
    ],
)
def test_a_limit_holds_at_its_number(evaluator: Evaluator, inside: str, outside: str, words: str) -> None:
    assert isinstance(ask(evaluator, inside), Evaluated), ask(evaluator, inside)

    failed = ask(evaluator, outside)

    assert isinstance(failed, ExpressionFailed)
    assert words in failed.reason


def test_a_busy_machine_fails_nothing_and_lets_nothing_pass(evaluator: Evaluator) -> None:
    failed = ask(evaluator, OVER)
    assert isinstance(failed, ExpressionFailed)
    assert failed.reason == OUT_OF_STEPS
    assert failed.position is not None
    with a_busy_machine():
        for _ in range(count(1, 20)):
            assert ask(evaluator, SIXTY_PERCENT) == Evaluated(values=("done",))
            assert ask(evaluator, OVER) == failed


def test_a_slow_pattern_passes_on_a_busy_machine_too(evaluator: Evaluator) -> None:
    """A pattern's second is the processor's: nothing can be counted in it, but waiting for others costs it nothing."""
    length, took = 16, 0.0
    while took < 0.15:
        length += 1
        before = time.process_time()
        assert regress.Regex("^(a+)+$").find("a" * length + "!") is None
        took = time.process_time() - before
    with a_busy_machine():
        for _ in range(count(2, 20)):
            assert evaluator.match(MatchPatterns(pairs=(("^(a+)+$", "a" * length + "!"),))) == Matched(found=(False,))


def test_a_batch_runs_out_at_the_same_source_every_time(evaluator: Evaluator) -> None:
    """The sources of a tool share one budget; nothing an earlier request left in the child adds to it or takes away."""
    batch = Evaluate(sources=("$sum(rows.($ * 2))", "rows[$ > 10] ~> $count") * 400, scope={"rows": list(range(300))})
    alone = Evaluator(children=1)
    first = alone.evaluate(batch)
    again = alone.evaluate(batch)
    with a_busy_machine():
        busy = evaluator.evaluate(batch)
    alone.close()

    assert isinstance(first, ExpressionFailed)
    assert 100 < first.index < 799
    assert again == first
    assert busy == first


def test_a_batch_of_cheap_sources_is_no_offence(evaluator: Evaluator) -> None:
    batch = Evaluate(sources=("a.b & '!'",) * 2_000, scope={"a": {"b": 1}})

    assert evaluator.evaluate(batch) == Evaluated(values=("1!",) * 2_000)


def test_a_long_source_costs_the_same_whether_or_not_its_tree_is_kept() -> None:
    alone = Evaluator(children=1)
    source = "$count([" + ",".join(["[1..9]"] * 500) + "])"
    batch = Evaluate(sources=(source,) * 400, scope={})
    outcomes = [alone.evaluate(batch) for _ in range(2)]
    alone.close()

    assert isinstance(outcomes[0], ExpressionFailed)
    assert outcomes[0].index > 10
    assert outcomes[1] == outcomes[0]


def test_many_kept_sources_leave_the_memory_for_the_next_one() -> None:
    alone = Evaluator(children=1)
    hungry = "$count($map([1..250], function($i){$pad('x', 1000000)}))"
    try:
        before = ask(alone, hungry)
        for number in range(count(25, 300)):
            long = f"{number} + " + "$count([" + "a.b[c], " * 480 + "1])"
            assert len(long) <= 4_000
            assert isinstance(ask(alone, long), Evaluated)
        assert ask(alone, hungry) == before == Evaluated(values=(250,))
    finally:
        alone.close()
