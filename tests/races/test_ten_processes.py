"""Ten processes that start, pause, list and decide at the same time: no error reaches a caller, and turns are fair."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from approvals.models import AuditEntry
from statestore.models import StateRecord
from tests.conftest import ROOT, People
from tests.counts import count
from tests.databases import DATABASE, PROVE
from tests.workbench import HEAD, write_spec
from workflows.models import Run, Status

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # Postgres has no single writer to be fair about: there the proving run alone measures.
    *([] if PROVE else [pytest.mark.only("sqlite")]),
]

PROCESSES = 10
SECONDS = count(6, 60)
#: One question without an expression: what is measured is the database, not the evaluator.
ASK = HEAD + "  workflow:\n    - {{step: first, type: approval, message: Go on?}}\n"


def busy(spec: Path, user: str, env: dict[str, str]) -> list[dict[str, Any]]:
    """What each of the processes says at its end."""
    command = [sys.executable, "-m", "tests.races.busy", str(spec), user, str(SECONDS), str(PROCESSES)]
    done = subprocess.run(command, env=env, cwd=ROOT, text=True, capture_output=True, timeout=SECONDS + 180)
    assert (done.returncode, done.stderr) == (0, "")
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


def percentile(numbers: list[float], part: float) -> float:
    return sorted(numbers)[min(len(numbers) - 1, int(len(numbers) * part))]


def measured(told: list[dict[str, Any]]) -> str:
    cycles = [one["cycles"] for one in told]
    latencies = []
    for act in ("start", "pause", "list", "decide"):
        numbers = [seconds for one in told for seconds in one["times"][act]]
        p50, p99 = percentile(numbers, 0.5) * 1000, percentile(numbers, 0.99) * 1000
        latencies.append(f"{act} p50 {p50:.1f} p99 {p99:.1f} max {max(numbers) * 1000:.0f} ms")
    rate = sum(cycles) / SECONDS
    ratio = min(cycles) / max(cycles)
    return (
        f"{PROCESSES} processes for {SECONDS} s on {DATABASE}: {rate:.0f} starts, pauses and decisions a second, "
        f"slowest {min(cycles)} to fastest {max(cycles)} cycles ({ratio:.2f}); {'; '.join(latencies)}"
    )


def test_no_error_reaches_a_caller_and_the_slowest_gets_at_least_a_third_of_the_fastest(
    tmp_path: Path, people: People, process_env: dict[str, str], report: Callable[[str], None]
) -> None:
    spec = write_spec(tmp_path, ASK)
    told = busy(spec.path, people.approver.username, process_env)
    errors = [error for one in told for error in one["errors"]]
    assert errors == []
    cycles = [one["cycles"] for one in told]
    report(measured(told))
    # Acts, not cycles: in the short everyday measurement a cycle is too coarse a unit.
    acts = [sum(len(times) for times in one["times"].values()) for one in told]
    assert min(acts) * 3 >= max(acts), measured(told)
    slowest = max(seconds for one in told for act in one["times"].values() for seconds in act)
    assert slowest < 20, "the busy timeout"
    assert AuditEntry.objects.filter(act="decide").count() == sum(cycles), "no decision was lost, none was made twice"
    assert Run.objects.filter(status=Status.RESUMED).count() == sum(cycles)
    assert Run.objects.filter(resumed_from__isnull=False).count() == sum(cycles)
    assert not StateRecord.objects.exists()
