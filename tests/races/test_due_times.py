"""However many schedulers look at once, a due time starts one run, or is skipped once (scenario 58)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from statestore.models import StateRecord
from tests.conftest import ROOT, Clock
from tests.counts import count
from tests.databases import DATABASE
from tests.triggers.scheduling import CLOUD, move, row, scheduled, started
from tests.triggers.timewalk import utc
from workflows.models import Run
from workflows.triggers import locks
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES, THREADS = 8, count(2, 4)
AGENTS, DAYS = count(2, 6), count(4, 40)
START, DAY = utc("2026-11-27 11:00"), timedelta(days=1)


def test_everybody_looks_at_the_same_moment(
    tmp_path: Path,
    settings: Settings,
    clock: Clock,
    process_env: dict[str, str],
    report: Callable[[str], None],
) -> None:
    settings.KAMPONG_SPECS = [str(tmp_path)]
    agents = [f"clerk-{number}" for number in range(AGENTS)]
    for number, agent_id in enumerate(agents):
        scheduled(tmp_path, f"{number} 9 * * *", agent_id=agent_id)
    scheduled(tmp_path, "0 9 * * *", agent_id="refused", model=CLOUD)
    move(clock, START)
    fire_due()
    assert not Run.objects.exists()

    # On the first day nothing is going yet; on the second the run of the first is.
    command = [sys.executable, "-m", "tests.races.firing", str(PROCESSES), str(THREADS), str(DAYS)]
    env = process_env | {"KAMPONG_SPECS": str(tmp_path)}
    done = subprocess.run(command, env=env, cwd=ROOT, text=True, capture_output=True, timeout=420)
    assert done.returncode == 0, done
    (said,) = done.stderr.splitlines()
    assert "schedule of refused" in said, "the one warning, and nothing else"

    firing = [number % 2 for number in range(DAYS)]
    firing[0] = 1
    assert json.loads(done.stdout) == [AGENTS * one for one in firing]
    for number, agent_id in enumerate(agents):
        due = [START.replace(hour=9, minute=number) + DAY * (day + 1) for day, one in enumerate(firing) if one]
        assert started(agent_id) == due
        state = row(agent_id)
        assert (state.started, state.skipped, state.failures) == (len(due), DAYS - len(due), 0)
        assert state.last_run is not None
        lock = StateRecord.objects.get(workflow=agent_id, key=locks.KEY)
        assert str(state.last_run.uuid) in lock.value
    refused = row("refused")
    assert (refused.failures, refused.started, refused.due_at) == (DAYS, 0, START.replace(hour=9) + DAY)
    assert Run.objects.count() == AGENTS * sum(firing)
    looks = PROCESSES * THREADS
    report(f"{AGENTS} schedules over {DAYS} days, {looks} looks at once on {DATABASE}: {sum(firing)} runs of each")
