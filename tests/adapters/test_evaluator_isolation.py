"""What a bomb costs everybody else: nothing but the time of its limit, and nothing that stays (scenario 68)."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.counts import count
from workflows.adapters.evaluator import Evaluator
from workflows.engine.effects import Evaluate, Evaluated, ExpressionFailed, MatchPatterns

TIME_BOMB = "($f := function($x){ $f($x + 1) }; $f(0))"
#: Gigabytes, if it were let.
MEMORY_BOMB = "$map([1..5000], function($i){$pad('😀', 1000000, '😀')})"
#: Stuck where no Python code runs.
PATTERN_BOMB = MatchPatterns(pairs=(("^(a+)+$", "a" * 60 + "!"),))


@pytest.fixture
def own() -> Iterator[Evaluator]:
    made = Evaluator(children=3)
    yield made
    made.close()


def ask(evaluator: Evaluator, source: str, scope: dict[str, object] | None = None) -> Evaluated | ExpressionFailed:
    return evaluator.evaluate(Evaluate(sources=(source,), scope={} if scope is None else scope))


def children() -> list[str]:
    """Of this process, dead ones that nobody waited for among them."""
    return [
        pid
        for task in Path("/proc/self/task").iterdir()
        for pid in (task / "children").read_text(encoding="ascii").split()
    ]


def resident() -> int:
    """Kilobytes of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def test_bombs_and_eight_threads_of_ordinary_work_get_their_own_answers(own: Evaluator) -> None:
    wrong: list[object] = []
    bombed: list[object] = []
    over = threading.Event()

    def ordinary(number: int) -> None:
        turn = 0
        while not over.is_set() or turn < 20:
            outcome = ask(own, "$sum(rows.n) & '-' & name", {"rows": [{"n": number}, {"n": turn}], "name": "x"})
            if outcome != Evaluated(values=(f"{number + turn}-x",)):
                wrong.append(outcome)
            turn += 1
            over.wait(0.005)

    threads = [threading.Thread(target=ordinary, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(count(1, 5)):
        bombed += [ask(own, TIME_BOMB), ask(own, MEMORY_BOMB), own.match(PATTERN_BOMB)]
    over.set()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert all(isinstance(outcome, ExpressionFailed) for outcome in bombed)
    assert len(own.pids()) <= 3


OTHER_PROCESS = """
import sys
from workflows.adapters.evaluator import Evaluator
from workflows.engine.effects import Evaluate
own = Evaluator(children=2)
print("ready", flush=True)
for source in sys.argv[2:] * int(sys.argv[1]):
    print(type(own.evaluate(Evaluate(sources=(source,), scope={}))).__name__, flush=True)
own.close()
"""


def test_bombs_of_other_processes_are_theirs(own: Evaluator) -> None:
    times = count(1, 2)
    command = [sys.executable, "-c", OTHER_PROCESS, str(times), TIME_BOMB, MEMORY_BOMB]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    for other in others:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
    while any(other.poll() is None for other in others):
        assert ask(own, "1 + 1") == Evaluated(values=(2,))
        time.sleep(0.005)

    for other in others:
        said, _ = other.communicate()
        assert said.split() == ["ExpressionFailed"] * 2 * times


def test_killed_children_leave_no_process_no_file_and_no_memory(own: Evaluator) -> None:
    assert ask(own, "1") == Evaluated(values=(1,))
    processes, files, memory = len(children()), len(os.listdir("/proc/self/fd")), resident()

    for turn in range(count(8, 200)):
        (pid,) = own.pids()
        os.kill(pid, signal.SIGKILL)
        assert ask(own, "n + 1", {"n": turn}) == Evaluated(values=(turn + 1,))

    assert len(children()) == processes
    assert len(os.listdir("/proc/self/fd")) == files
    assert resident() - memory < 20_000


def test_failures_of_every_kind_leave_no_process_and_no_file(own: Evaluator) -> None:
    assert ask(own, "1") == Evaluated(values=(1,))
    processes, files, memory = len(children()), len(os.listdir("/proc/self/fd")), resident()

    for _ in range(count(1, 20)):
        for source in ("1/0", "a = = 1", TIME_BOMB, MEMORY_BOMB, "$f()"):
            assert isinstance(ask(own, source), ExpressionFailed)
        assert isinstance(own.match(PATTERN_BOMB), ExpressionFailed)
    assert ask(own, "1") == Evaluated(values=(1,))

    assert len(children()) == processes
    assert len(os.listdir("/proc/self/fd")) == files
    assert resident() - memory < 20_000


def test_no_child_that_keeps_a_lot_of_memory_is_used_again(own: Evaluator) -> None:
    held = bytearray(200_000_000)  # a large parent is no reason
    assert ask(own, "1") == Evaluated(values=(1,))
    before = own.pids()
    assert len(before) == 1
    assert ask(own, "$count([1..1000])") == Evaluated(values=(1000,))
    assert own.pids() == before

    large = ask(own, "$count(rows)", {"rows": [{str(row): row} for row in range(190_000)]})

    assert large == Evaluated(values=(190_000,))
    assert ask(own, "1") == Evaluated(values=(1,))
    (pid,) = own.pids()
    assert int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize() < 200_000_000
    assert len(held) == 200_000_000


HUNGRY = {
    "texts": "$count($map([1..5000], function($i){$pad('x', 1000000)}))",
    "wide texts": "$count($map([1..5000], function($i){$pad('😀', 1000000, '😀')}))",
    "pieces": "$count($map([1..5000], function($i){[[$split($pad('x', 199000), '')]]}))",
    "lists": "($x := [1..100000]; $count($map([1..50000], function($i){[[$append($x, $i)]]})))",
    "mappings": "$count($map([1..200000], function($i){{'a': $i, 'b': {'c': $i}}}))",
    "functions": "$count($map([1..200000], function($i){function($j){$i}}))",
    "tuples": "$count([1..200000]#$i.([$i, $]))",
    "copies": "($o := {'a': {'b': {'c': 1}}}; $count($map([1..200000], function($i){$o ~> |$|{'x': $i}|})))",
    "spread": "($o := $merge([1..20000].{$string($): $}); $count($map([1..50000], function($i){[[$spread($o)]]})))",
    "numbers": "$count($map([1..200000], function($i){[[$i / 7, $i / 11]]}))",
}


@pytest.mark.parametrize("name", HUNGRY)
def test_the_steps_run_out_before_the_memory_does(own: Evaluator, name: str) -> None:
    """So that what an evaluation is allowed never depends on what its child did before."""
    outcome = ask(own, HUNGRY[name])

    assert isinstance(outcome, Evaluated) or "1 second" in outcome.reason or "200000 items" in outcome.reason, outcome


def test_an_answer_too_large_to_take_is_refused(own: Evaluator) -> None:
    refused = ask(own, "$map([1..70], function($i){$pad('x', 999999)})")

    assert refused == ExpressionFailed(index=0, reason="the result is too large")
    assert ask(own, "1") == Evaluated(values=(1,))


def test_a_child_that_cannot_be_started_is_a_clear_failure(own: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/nowhere/python")
        failed = ask(own, "1")

    assert failed == ExpressionFailed(
        index=0, reason="the evaluator's child process could not be started (No such file or directory)"
    )
    assert ask(own, "1") == Evaluated(values=(1,))


def test_a_process_without_a_file_to_spare_gets_a_clear_failure(own: Evaluator) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        failed = ask(own, "1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert failed == ExpressionFailed(
        index=0, reason="the evaluator's child process could not be started (Too many open files)"
    )
    assert ask(own, "1") == Evaluated(values=(1,))


def test_a_deep_scope_and_a_deep_result_are_failures_at_most(own: Evaluator) -> None:
    deep: dict[str, object] = {"end": 1}
    for _ in range(900):
        deep = {"d": deep}

    assert ask(own, "$exists(d)", deep) == Evaluated(values=(True,))
    for source in ("**.end", "$string(d)", "d = d", "$distinct([d, d])", "$ ~> |d|{'x': 1}|", "d"):
        assert isinstance(ask(own, source, deep), Evaluated | ExpressionFailed)
    assert ask(own, "1") == Evaluated(values=(1,))
