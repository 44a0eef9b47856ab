"""A burst of deliveries of one event starts one run, and everybody is told its id (scenarios 44 and 58)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statestore.models import StateRecord
from tests.conftest import ROOT
from tests.counts import count
from tests.databases import DATABASE
from tests.hooks import BY_ID, SIGNED, VARIABLE, hooked
from tests.signing import SECRET
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES, THREADS = 8, count(2, 4)
EVENTS = count(3, 40)


def burst(env: dict[str, str]) -> list[list[Any]]:
    """What all threads of all processes were answered, event by event."""
    command = [sys.executable, "-m", "tests.races.delivering", str(PROCESSES), str(THREADS), str(EVENTS)]
    done = subprocess.run(command, env=env, cwd=ROOT, text=True, capture_output=True, timeout=420)
    assert (done.returncode, done.stderr) == (0, ""), done
    told: list[list[Any]] = json.loads(done.stdout)
    return told


def test_eight_processes_deliver_the_same_events_at_the_same_moments(
    tmp_path: Path, process_env: dict[str, str], report: Callable[[str], None]
) -> None:
    hooked(tmp_path, SIGNED, BY_ID)
    told = burst(process_env | {"KAMPONG_SPECS": str(tmp_path), VARIABLE: SECRET})
    for answers in told:
        assert Counter(status for status, _ in answers) == {201: 1, 200: PROCESSES * THREADS - 1}, answers
        assert len({run for _, run in answers}) == 1, answers
    runs = {run for answers in told for _, run in answers}
    assert len(runs) == EVENTS
    assert runs == {str(run.uuid) for run in Run.objects.all()}
    assert StateRecord.objects.filter(key__startswith="hook:delivery:").count() == EVENTS
    report(f"{EVENTS} events, each delivered {PROCESSES * THREADS} times at once on {DATABASE}: {EVENTS} runs")
