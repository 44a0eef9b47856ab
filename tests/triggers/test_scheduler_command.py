"""The scheduler as a process of its own; as a part of `serve` the examples show it."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.conftest import Clock, Processes
from tests.served import until
from tests.surfaces.cli.running import command
from tests.triggers.scheduling import move, scheduled, started
from tests.triggers.timewalk import utc
from tests.workbench import ASKING, to_pause, write_spec
from workflows.models import Run, Status, TriggerState, WorkerBeat
from workflows.triggers.scheduler import SHORTEST_REST, Scheduler

pytestmark = pytest.mark.django_db(transaction=True)
START = utc("2026-11-27 06:00")
HOUR = timedelta(hours=1)


def test_alone_it_starts_what_is_due_keeps_house_and_ends_when_told(
    folder: Path, tmp_path: Path, clock: Clock, manage: Processes
) -> None:
    move(clock, START)
    waiting, _ = to_pause(write_spec(tmp_path, ASKING, agent_id="asker"))
    path = scheduled(folder, "0 * * * *").path
    (folder / "broken.yaml").write_text("version: [")
    process = manage.start("scheduler", str(folder), env={"KAMPONG_SCHEDULER_SECONDS": "0.05"})
    until(lambda: TriggerState.objects.filter(due_at=START + HOUR).exists())
    move(clock, START + HOUR)
    until(started)
    move(clock, START + timedelta(days=8))
    until(lambda: Run.objects.get(pk=waiting.pk).status == Status.EXPIRED)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, f"  clerk: schedule, {path}\nScheduling. Ctrl-C ends it.\nStopped.\n")
    assert f"not served: {folder / 'broken.yaml'}" in err
    assert "Traceback" not in err
    assert started() == [START + HOUR]
    assert not WorkerBeat.objects.exists()


def test_no_setting_makes_it_look_without_end(settings: Settings) -> None:
    settings.KAMPONG_SCHEDULER_SECONDS = 0.0
    settings.KAMPONG_SPECS = []
    scheduler = Scheduler()
    assert scheduler._fire() == scheduler._poll() == SHORTEST_REST


def test_a_spec_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    told = command("scheduler", str(tmp_path / "nothing.yaml"))
    assert told.code == 1
    assert "nothing.yaml" in told.err
