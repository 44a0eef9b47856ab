"""While a run is going the next one is skipped or waits, and nothing holds a lock that is not going (ST-11)."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from approvals.services import decide
from statestore.clock import now
from statestore.models import StateRecord
from tests.conftest import Clock, People
from tests.triggers.scheduling import WAITS, move, row, scheduled, started
from tests.triggers.timewalk import utc
from tests.workbench import acting, key_of, work
from workflows.models import Run, Status
from workflows.runs import newest, retry_run
from workflows.triggers import locks
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)
START = utc("2026-11-27 06:00")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def lock() -> StateRecord | None:
    return StateRecord.objects.filter(workflow="clerk", key=locks.KEY).first()


def holder() -> str:
    """The run that the lock names, `` when nobody has it."""
    entry = lock()
    if entry is None or entry.expires_at is None or entry.expires_at <= now():
        return ""
    return str(entry.value).split('"run":')[1].split('"')[1]


def waiting(folder: Path, clock: Clock, *keys: str) -> Run:
    """A schedule of every ten minutes whose first run waits for a person at five past."""
    scheduled(folder, "*/10 * * * *", *keys, workflow=WAITS)
    move(clock, START - 5 * MINUTE)
    fire_due()
    move(clock, START + 5 * MINUTE)
    assert fire_due() == 1
    work()
    run = Run.objects.get()
    assert run.status == Status.AWAITING
    return run


def answer(people: People, approved: bool) -> None:
    """Decide what waits, and let the workers go on."""
    run = newest(Run.objects.order_by("id").last() or Run())
    decide(key_of(run), approved=approved, actor=acting(people.approver))
    work()


def test_a_due_time_is_skipped_visibly_while_the_run_before_is_going(
    folder: Path, clock: Clock, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    run = waiting(folder, clock)
    assert holder() == str(run.uuid)
    move(clock, START + 15 * MINUTE)
    with caplog.at_level(logging.INFO, logger="kampong.scheduler"):
        assert [fire_due(), fire_due()] == [0, 0]
    (said,) = [record.message for record in caplog.records if "skipped" in record.message]
    assert str(run.uuid) in said
    after = row()
    assert (after.skipped, after.started, after.last_due_at) == (1, 1, START + 10 * MINUTE)
    assert after.skipped_at is not None
    assert after.due_at == START + 20 * MINUTE

    answer(people, approved=True)  # the run that follows it waits again: the chain is going
    move(clock, START + 25 * MINUTE)
    assert fire_due() == 0
    assert (row().skipped, holder()) == (2, str(run.uuid))

    answer(people, approved=True)
    assert newest(run).status == Status.COMPLETED
    assert fire_due() == 0
    assert holder() == ""
    move(clock, START + 35 * MINUTE)
    assert fire_due() == 1
    assert started() == [START, START + 30 * MINUTE]
    assert holder() == str(Run.objects.order_by("id").last().uuid)  # type: ignore[union-attr]


def test_with_queue_one_run_starts_after_it_for_all_the_times_between(
    folder: Path, clock: Clock, people: People
) -> None:
    waiting(folder, clock, "overlap: queue")
    for minutes in (15, 25, 35):
        move(clock, START + minutes * MINUTE)
        assert fire_due() == 0
    assert (row().skipped, row().due_at) == (0, START + 10 * MINUTE)
    answer(people, approved=False)
    assert [fire_due(), fire_due()] == [1, 0]
    assert started() == [START, START + 30 * MINUTE]
    assert row().due_at == START + 40 * MINUTE


def test_the_lock_outlives_its_lifetime_while_a_run_waits_and_is_put_again_after_an_outage(
    folder: Path, clock: Clock, people: People
) -> None:
    run = waiting(folder, clock, "lock_ttl: 10m")
    first = lock()
    assert first is not None
    for minutes in range(6, 46, 4):
        move(clock, START + minutes * MINUTE)
        fire_due()
        assert holder() == str(run.uuid)
    kept = lock()
    assert kept is not None
    assert kept.pk == first.pk
    assert kept.created_at == first.created_at

    move(clock, START + 6 * HOUR)  # nobody ran, and the entry is gone
    assert holder() == ""
    StateRecord.objects.all().exclude(key__startswith="approval:").delete()
    assert fire_due() == 0
    assert holder() == str(run.uuid)
    assert (row().started, row().skipped) == (1, 5)

    answer(people, approved=False)
    move(clock, START + 6 * HOUR + 10 * MINUTE)
    assert fire_due() == 1
    assert row().started == 2


def test_it_is_renewed_only_when_a_third_of_it_is_over(folder: Path, clock: Clock) -> None:
    waiting(folder, clock, "lock_ttl: 30m")
    versions = []
    for minutes in (6, 9, 14, 16, 17, 20):
        move(clock, START + minutes * MINUTE)
        fire_due()
        entry = lock()
        assert entry is not None
        versions.append(entry.version)
    assert versions == [versions[0]] * 3 + [versions[0] + 1] * 3
    scheduled(folder, "*/10 * * * *", "lock_ttl: 10m", workflow=WAITS)
    fire_due()
    entry = lock()
    assert entry is not None
    assert entry.expires_at is not None
    assert entry.expires_at - now() < 10 * MINUTE


def test_a_lock_that_an_operator_freed_is_not_put_again(folder: Path, clock: Clock) -> None:
    run = waiting(folder, clock)
    state = row()
    state.lock_freed = True
    state.save(update_fields=["lock_freed"])
    StateRecord.objects.filter(key=locks.KEY).delete()
    assert fire_due() == 0
    assert holder() == ""
    move(clock, START + 15 * MINUTE)
    assert fire_due() == 1
    second = Run.objects.order_by("id").last()
    assert second is not None
    assert (row().lock_freed, row().last_run, holder()) == (False, second, str(second.uuid))
    assert Run.objects.get(pk=run.pk).status == Status.AWAITING


def test_a_chain_that_an_operator_retries_is_going_again(folder: Path, clock: Clock, people: People) -> None:
    run = waiting(folder, clock)
    Run.objects.filter(pk=run.pk).update(status=Status.INTERRUPTED)
    assert fire_due() == 0
    assert holder() == ""
    again = retry_run(Run.objects.get(pk=run.pk), actor=acting(people.operator), reason="it was the network")
    move(clock, START + 15 * MINUTE)
    assert fire_due() == 0
    assert (again.status, row().skipped, holder()) == (Status.QUEUED, 1, str(run.uuid))


def test_the_lock_of_one_agent_is_not_anothers(folder: Path, clock: Clock) -> None:
    waiting(folder, clock)
    scheduled(folder, "*/10 * * * *", agent_id="other")
    fire_due()
    move(clock, START + 15 * MINUTE)
    assert fire_due() == 1
    assert (row("other").started, row().skipped) == (1, 1)


def test_an_entry_that_cannot_be_read_stops_no_schedule(folder: Path, clock: Clock) -> None:
    run = waiting(folder, clock)
    scheduled(folder, "0 * * * *", agent_id="other")
    fire_due()
    StateRecord.objects.filter(key=locks.KEY).update(value="{")
    move(clock, START + HOUR)
    assert fire_due() == 1, "the other one"
    assert row().skipped == 1
    Run.objects.filter(pk=run.pk).update(status=Status.CANCELLED)
    move(clock, START + HOUR + 10 * MINUTE)
    assert fire_due() == 1
    assert holder() == str(Run.objects.latest("id").uuid)
