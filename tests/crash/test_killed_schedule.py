"""A killed scheduler has started a due time's run or left it due; a killed holder of the overlap lock frees itself."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from statestore.models import StateRecord
from tests.conftest import Clock
from tests.crash.conftest import Child, dies
from tests.fakes_tools import FakeTools
from tests.triggers.scheduling import move, row, scheduled, started
from tests.triggers.timewalk import utc
from tests.workbench import work
from workflows.models import Run, SpecVersion, Status
from workflows.recovery import recover
from workflows.triggers import locks
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)
START = utc("2026-11-27 06:00")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LOOKS = "    - {step: look, type: tool, tool: look}"


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    """Served here; children are told of it."""
    path = tmp_path / "specs"
    path.mkdir()
    settings.KAMPONG_SPECS = [str(path)]
    return path


def locked() -> bool:
    return StateRecord.objects.filter(key=locks.KEY).exists()


@pytest.mark.parametrize(
    ("point", "committed"),
    [
        ("schedule.claimed", False),
        ("start.key_taken", False),
        ("schedule.started", False),
        ("schedule.committed", True),
    ],
)
def test_wherever_a_scheduler_is_killed_the_due_time_gets_one_run(
    folder: Path, clock: Clock, child: Child, point: str, committed: bool
) -> None:
    scheduled(folder, "0 * * * *")
    move(clock, START)
    fire_due()
    move(clock, START + HOUR)
    dies(child("fire", faults=f"{point}=kill", KAMPONG_SPECS=str(folder)))
    assert (Run.objects.count(), SpecVersion.objects.count(), locked()) == (committed, committed, committed)
    assert (row().due_at == START + HOUR) is not committed
    assert [fire_due(), fire_due()] == [not committed, 0]
    assert started() == [START + HOUR]
    assert (row().started, row().last_run) == (1, Run.objects.get())
    work()
    assert Run.objects.get().status == Status.COMPLETED


def holder_is_killed(folder: Path, clock: Clock, child: Child, tools: FakeTools, *keys: str) -> None:
    """A run in the middle of a call, whose worker is no more."""
    look = f'  tools:\n    - {{name: look, action: http_request, method: GET, url: "{tools.url}/invoice"}}\n'
    scheduled(folder, "*/5 * * * *", *keys, tools=look, workflow=LOOKS)
    move(clock, START - MINUTE)
    fire_due()
    move(clock, START + MINUTE)
    assert fire_due() == 1
    dies(child("advance", str(Run.objects.get().uuid), faults="run.called=kill"))
    assert Run.objects.get().status == Status.RUNNING
    move(clock, START + 3 * MINUTE)  # its lease is over


@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_recovery_frees_the_lock_of_a_killed_holder(
    folder: Path, clock: Clock, child: Child, tools: FakeTools, overlap: str
) -> None:
    holder_is_killed(folder, clock, child, tools, f"overlap: {overlap}")
    move(clock, START + 6 * MINUTE)
    assert fire_due() == 0
    assert (row().due_at, row().skipped) == (START + 5 * MINUTE, 0), "nobody knows yet what became of it"
    assert recover().interrupted == 1
    assert [fire_due(), fire_due()] == [1, 0]
    assert started() == [START, START + 5 * MINUTE]


def test_where_nobody_recovers_its_lifetime_frees_it(
    folder: Path, clock: Clock, child: Child, tools: FakeTools
) -> None:
    holder_is_killed(folder, clock, child, tools, "lock_ttl: 20m")
    for minutes in (6, 11, 16, 20):
        move(clock, START + minutes * MINUTE)
        assert fire_due() == 0
        assert locked()
    move(clock, START + 22 * MINUTE)
    assert [fire_due(), fire_due()] == [1, 0]
    assert started() == [START, START + 20 * MINUTE]
    assert row().last_run == Run.objects.order_by("id").last()
