"""What a schedule starts: each due time one run, missed ones once, and a refused one as soon as it can be."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from statestore.models import StateRecord
from tests.conftest import Clock
from tests.triggers.scheduling import CLOUD, due_of, move, row, scheduled, started
from tests.triggers.timewalk import due_times, utc
from tests.workbench import work
from workflows.models import Run, RunEvent, SpecVersion, Status, TriggerState
from workflows.registry import SpecFile
from workflows.runs import start_run
from workflows.triggers import schedules
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)
START = utc("2026-11-27 06:00")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def test_a_due_time_starts_one_run_with_the_triggers_input(folder: Path, clock: Clock) -> None:
    keys = ("timezone: Asia/Singapore", "input: morning report")
    reading = '    - {step: at, type: open, key: "{{ trigger.headers.`scheduled-at` }}", value: "{{ input }}", ttl: 1d}'
    scheduled(folder, "0 8 * * mon-fri", *keys, workflow=reading)
    move(clock, START)
    assert fire_due() == 0
    assert row().due_at == utc("2026-11-30 00:00")
    move(clock, utc("2026-11-30 00:00") + timedelta(seconds=1))
    assert [fire_due(), fire_due()] == [1, 0]
    run = Run.objects.get()
    assert (run.input, run.started_by, run.surface) == ("morning report", "schedule of clerk", "schedule")
    assert due_of(run) == utc("2026-11-30 00:00")
    after = row()
    assert (after.last_due_at, after.due_at) == (utc("2026-11-30 00:00"), utc("2026-12-01 00:00"))
    assert (after.started, after.last_run, after.skipped, after.error) == (1, run, 0, "")
    work()
    run.refresh_from_db()
    assert run.status == Status.COMPLETED
    assert '"key":"2026-11-30T00:00:00.000Z"' in run.outputs.replace(" ", "")
    assert "morning report" in run.outputs


def test_times_that_nobody_saw_are_one_run_for_the_last_of_them(folder: Path, clock: Clock) -> None:
    scheduled(folder, "*/5 * * * *")
    move(clock, START)
    fire_due()
    move(clock, START + 5 * HOUR + 2 * MINUTE)
    assert [fire_due(), fire_due()] == [1, 0]
    assert started() == [START + 5 * HOUR]
    assert row().due_at == START + 5 * HOUR + 5 * MINUTE


@pytest.mark.parametrize("begin", ["2026-03-07 12:00", "2026-10-31 12:00"])
@pytest.mark.parametrize("cron", ["30 2 * * *", "30 1 * * *"])
def test_daylight_saving_makes_one_start_a_day(folder: Path, clock: Clock, begin: str, cron: str) -> None:
    """Scenario 69: through both changes of the clock, by the documented rule."""
    zone = "America/New_York"
    scheduled(folder, cron, f"timezone: {zone}")
    at = first = utc(begin)
    move(clock, at)
    fire_due()
    while at < first + 48 * HOUR:
        at += 1.5 * HOUR
        move(clock, at + timedelta(seconds=5))
        fire_due()
        work()
    assert started() == due_times(cron, zone, first, at)
    assert len(started()) == 2


def test_only_what_is_served_and_good_fires_and_the_rest_is_made_up_for(folder: Path, clock: Clock) -> None:
    file = scheduled(folder, "0 * * * *")
    good = file.path.read_text()
    move(clock, START)
    fire_due()
    file.path.write_text("version: [")
    move(clock, START + HOUR)
    assert fire_due() == 0
    file.path.unlink()
    move(clock, START + 2 * HOUR)
    assert fire_due() == 0
    assert row().due_at == START + HOUR
    file.path.write_text(good)
    assert [fire_due(), fire_due()] == [1, 0]
    assert started() == [START + 2 * HOUR]


def test_a_changed_schedule_is_due_by_the_new_times_alone(folder: Path, clock: Clock) -> None:
    scheduled(folder, "0 * * * *")
    move(clock, START)
    fire_due()
    move(clock, START + HOUR)
    scheduled(folder, "0 9 * * *", "overlap: queue")
    assert fire_due() == 0
    assert row().due_at == utc("2026-11-27 09:00")
    assert TriggerState.objects.count() == 1


def test_a_refused_start_leaves_nothing_is_tried_again_and_made_up_for_once(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("SCHEDULE_KEY", raising=False)
    scheduled(folder, "0 * * * *", model=CLOUD)
    move(clock, START)
    fire_due()
    move(clock, START + HOUR)
    with caplog.at_level(logging.WARNING, logger="kampong.scheduler"):
        waits = []
        for times in range(1, 9):
            assert [fire_due(), fire_due()] == [0, 0]
            after = row()
            assert (after.failures, after.due_at, after.started) == (times, START + HOUR, 0)
            assert after.retry_at is not None
            assert after.failed_at is not None
            waits.append(round((after.retry_at - after.failed_at).total_seconds()))
            move(clock, after.retry_at)
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]
    assert "SCHEDULE_KEY" in row().error
    assert [record.message.count("SCHEDULE_KEY") for record in caplog.records] == [1]
    assert not Run.objects.exists()
    assert not RunEvent.objects.exists()
    assert not SpecVersion.objects.exists()
    assert not StateRecord.objects.exists()

    monkeypatch.setenv("SCHEDULE_KEY", "sk-test")
    assert [fire_due(), fire_due()] == [1, 0]
    assert started() == [START + HOUR]
    assert (row().failures, row().error, row().retry_at) == (0, "", None)


def test_one_that_cannot_start_keeps_no_other_from_starting(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCHEDULE_KEY", raising=False)
    scheduled(folder, "0 * * * *", agent_id="a", model=CLOUD)
    scheduled(folder, "0 * * * *", agent_id="b")
    move(clock, START)
    fire_due()
    move(clock, START + HOUR)
    assert fire_due() == 1
    assert (started("a"), started("b")) == ([], [START + HOUR])
    assert (row("a").failures, row("b").failures) == (1, 0)


def test_one_that_the_database_refuses_keeps_no_other_from_starting_and_is_told_in_the_end(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agent_id in ("a", "b"):
        scheduled(folder, "0 * * * *", agent_id=agent_id)
    move(clock, START)
    fire_due()
    move(clock, START + HOUR)

    def refused(file: SpecFile, **more: Any) -> Any:
        if file.agent_id == "a":
            raise OperationalError("database is locked")
        return start_run(file, **more)

    with monkeypatch.context() as broken:
        broken.setattr(schedules, "start_run", refused)
        with pytest.raises(OperationalError):
            fire_due()
    assert (started("a"), started("b")) == ([], [START + HOUR])
    assert (row("a").failures, row("a").due_at) == (0, START + HOUR)
    assert fire_due() == 1


def test_what_nobody_foresaw_is_told_without_what_it_broke_on(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The secret stands in the error, and neither in the row nor in the log."""
    monkeypatch.setenv("SCHEDULE_KEY", "canary-123")
    scheduled(folder, "0 * * * *", model=CLOUD)
    move(clock, START)
    fire_due()
    move(clock, START + HOUR)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("canary-123")

    monkeypatch.setattr(schedules, "start_run", broken)
    assert fire_due() == 0
    assert row().error == "unexpected error: ZeroDivisionError; see the log of the scheduler."
    assert "ZeroDivisionError" in caplog.text
    assert "canary" not in caplog.text


def test_without_schedules_a_pass_asks_the_database_nothing(folder: Path, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert fire_due() == 0


def test_what_a_pass_asks_does_not_grow_with_the_schedules(
    folder: Path, clock: Clock, django_assert_max_num_queries: object
) -> None:
    move(clock, START)
    for number in range(6):
        scheduled(folder, "0 * * * *", agent_id=f"clerk-{number}")
    fire_due()
    move(clock, START + HOUR)
    assert fire_due() == 6
    with django_assert_max_num_queries(5):  # type: ignore[operator]
        assert fire_due() == 0
