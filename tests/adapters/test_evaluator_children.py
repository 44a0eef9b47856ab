"""The evaluator's processes: what they inherit, how they die, who outlives whom."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import workflows
from workflows.adapters import evaluator as module
from workflows.adapters.evaluator import Evaluator
from workflows.engine.effects import Evaluate, Evaluated, ExpressionFailed, MatchPatterns

ROOT = str(Path(workflows.__file__).parent.parent)
ONE = Evaluated(values=(1,))
#: Runs where no Python code does, so that only a kill ends it.
STUCK = MatchPatterns(pairs=(("^(a+)+$", "a" * 60 + "!"),))


@pytest.fixture
def alone() -> Iterator[Evaluator]:
    made = Evaluator(children=1)
    yield made
    made.close()


def ask(evaluator: Evaluator, source: str = "1") -> Evaluated | ExpressionFailed:
    return evaluator.evaluate(Evaluate(sources=(source,), scope={}))


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "waited a minute in vain"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_child_inherits_no_environment_and_no_files(alone: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_SECRET", "hummingbird")
    with open(os.devnull) as held:
        os.set_inheritable(held.fileno(), True)
        assert ask(alone) == ONE
        (pid,) = alone.pids()
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        files = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    assert b"hummingbird" not in environment
    assert set(filter(None, environment.split(b"\0"))) <= {
        f"LD_LIBRARY_PATH={os.environ.get('LD_LIBRARY_PATH')}".encode()
    }
    assert b"hummingbird" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert len([name for name in files if name != os.devnull]) <= 3
    assert not [name for name in files if name.startswith("/") and name != os.devnull]


def test_a_child_is_limited_and_leaves_no_core(alone: Evaluator) -> None:
    assert ask(alone) == ONE
    (pid,) = alone.pids()
    limits = {line[:26].strip(): line[26:].split()[0] for line in Path(f"/proc/{pid}/limits").read_text().splitlines()}
    assert limits["Max address space"] == str(512 * 1024 * 1024)
    assert limits["Max core file size"] == "0"


def test_the_child_needs_no_django() -> None:
    code = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); sys.modules['django'] = None;"
        "import workflows.adapters.evaluator_child as child; print(child.PATTERN_SECONDS)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, json.dumps([ROOT, *sys.path])],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "1.0\n", done.stderr


def test_an_idle_child_that_was_killed_is_replaced_unnoticed(alone: Evaluator) -> None:
    assert ask(alone) == ONE
    (first,) = alone.pids()
    os.kill(first, signal.SIGKILL)
    assert ask(alone) == ONE
    (second,) = alone.pids()
    assert second != first
    assert gone(first)


def test_a_child_killed_at_work_is_a_clear_failure_and_the_next_evaluation_goes_on(alone: Evaluator) -> None:
    assert ask(alone) == ONE
    (pid,) = alone.pids()
    before = processor_time(pid)
    outcomes: list[object] = []
    asking = threading.Thread(target=lambda: outcomes.append(alone.match(STUCK)))
    asking.start()
    wait_for(lambda: processor_time(pid) > before + 5)
    os.kill(pid, signal.SIGKILL)
    asking.join()
    (outcome,) = outcomes
    assert isinstance(outcome, ExpressionFailed)
    assert "killed by signal 9" in outcome.reason
    assert ask(alone) == ONE


def processor_time(pid: int) -> int:
    """Clock ticks that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_stopped_child_is_replaced_after_a_while() -> None:
    hasty = Evaluator(children=1, patience=5)
    assert ask(hasty) == ONE
    (pid,) = hasty.pids()
    os.kill(pid, signal.SIGSTOP)
    outcome = ask(hasty)
    assert isinstance(outcome, ExpressionFailed)
    assert outcome.reason == "the evaluator's child process did not answer within 5 seconds"
    assert ask(hasty) == ONE
    assert gone(pid)
    hasty.close()


def test_an_interrupt_and_a_termination_of_the_group_do_not_end_a_child(alone: Evaluator) -> None:
    assert ask(alone) == ONE
    (pid,) = alone.pids()
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGTERM)
    assert ask(alone) == ONE
    assert alone.pids() == [pid]


def test_many_threads_get_their_own_answers_from_few_children() -> None:
    few = Evaluator(children=2)
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(25):
            outcome = few.evaluate(Evaluate(sources=("a & '-' & b",), scope={"a": number, "b": turn}))
            if outcome != Evaluated(values=(f"{number}-{turn}",)):
                wrong.append(outcome)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(few.pids()) <= 2
    few.close()
    assert few.pids() == []


def test_a_closed_evaluator_refuses_and_its_children_are_gone(alone: Evaluator) -> None:
    assert ask(alone) == ONE
    (pid,) = alone.pids()
    alone.close()
    assert gone(pid)
    with pytest.raises(RuntimeError, match="closed"):
        ask(alone)


def test_the_shared_evaluator_is_one_and_is_made_anew_after_closing() -> None:
    first = module.shared()
    assert module.shared() is first
    first.close()
    second = module.shared()
    assert second is not first
    assert ask(second) == ONE
    second.close()


PARENT = """
import os, sys, threading, time
from workflows.adapters.evaluator import Evaluator
from workflows.engine.effects import Evaluate, MatchPatterns
evaluator = Evaluator(children=2)
evaluator.evaluate(Evaluate(sources=("1",), scope={}))
idle = evaluator.pids()
stuck = MatchPatterns(pairs=(("^(a+)+$", "a" * 60 + "!"),))
threading.Thread(target=lambda: evaluator.match(stuck), daemon=True).start()
while len(evaluator.pids()) < 2:
    evaluator.evaluate(Evaluate(sources=("1",), scope={}))
print(*evaluator.pids(), flush=True)
time.sleep(60)
"""


def test_children_end_when_their_parent_is_killed_even_at_work() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.kill()
    parent.communicate()
    wait_for(lambda: all(gone(pid) for pid in pids))


FORKING = """
import os, sys
from workflows.adapters.evaluator import shared
from workflows.engine.effects import Evaluate
one = Evaluate(sources=("1",), scope={})
shared().evaluate(one)
mine = shared().pids()
forked = os.fork()
if forked == 0:
    assert shared().pids() == []
    shared().evaluate(one)
    theirs = shared().pids()
    shared().close()
    os._exit(0 if theirs and theirs != mine else 1)
_, status = os.waitpid(forked, 0)
assert status == 0
assert shared().pids() == mine
shared().evaluate(one)
assert shared().pids() == mine
print("fine")
"""


def test_a_fork_gets_children_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING], capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert done.stdout == "fine\n", done.stderr
