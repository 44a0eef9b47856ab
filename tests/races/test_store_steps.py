"""Eight processes come to a step on the store with one key at the same instant: one is the first, seven learn of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.counts import count
from tests.workflows.storing import CLOSE_STEP, ONCE_STEP, OPEN_STEP, a_spec, done, keys, output
from workflows.models import Status
from workflows.runs import find_run, newest

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES = 8
ROUNDS = count(5, 50)


def raced(spec: Path, step: str, env: dict[str, str]) -> list[dict[str, Any]]:
    """What each process's step gave, by run, one mapping a round."""
    command = [sys.executable, "-m", "tests.races.askers", str(spec), str(ROUNDS), str(PROCESSES)]
    told = subprocess.run(command, env=env, cwd=ROOT, text=True, capture_output=True, timeout=180 + 10 * ROUNDS)
    assert (told.returncode, told.stderr) == (0, "")
    rounds = []
    for ids in json.loads(told.stdout):
        runs = {one: newest(find_run(one)) for one in ids}
        assert {run.status for run in runs.values()} == {Status.COMPLETED}
        rounds.append({one: output(run, step) for one, run in runs.items()})
    assert len(rounds) == ROUNDS
    return rounds


def test_once(tmp_path: Path, process_env: dict[str, str], report: Callable[[str], None]) -> None:
    for number, given in enumerate(raced(a_spec(tmp_path, ONCE_STEP).path, "first", process_env)):
        (winner,) = [run for run, one in given.items() if one == {"first": True}]
        others = [one for run, one in given.items() if run != winner]
        assert others == [{"first": False, "run": winner}] * (PROCESSES - 1)
        assert keys()[f"once:k{number}"] == {"run": winner}
    report(f"{ROUNDS} rounds of {PROCESSES} processes with one key: one goes on, {PROCESSES - 1} are told who")


def test_open(tmp_path: Path, process_env: dict[str, str]) -> None:
    for given in raced(a_spec(tmp_path, OPEN_STEP).path, "open", process_env):
        (winner,) = [run for run, one in given.items() if one["opened"]]
        incident = given[winner]["incident"]
        assert incident["runId"] == winner
        assert [one["incident"] for one in given.values()] == [incident] * PROCESSES


def test_close(tmp_path: Path, process_env: dict[str, str]) -> None:
    opens = a_spec(tmp_path, OPEN_STEP)
    opened = [output(done(opens, f"k{number}"), "open")["incident"] for number in range(ROUNDS)]
    for incident, given in zip(opened, raced(a_spec(tmp_path, CLOSE_STEP).path, "close", process_env), strict=True):
        (winner,) = [run for run, one in given.items() if one["closed"]]
        assert given.pop(winner) == {"closed": True, "incident": incident}
        assert list(given.values()) == [{"closed": False}] * (PROCESSES - 1)
    assert keys() == {}
