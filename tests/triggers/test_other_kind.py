"""A file whose trigger becomes one of the other kind: nothing that the old one did holds the new one."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from statestore.clock import now
from tests.conftest import Clock
from tests.triggers.orders import Orders, an_agent, one_run_each, row
from tests.triggers.scheduling import due_of, move, scheduled
from tests.workbench import work
from workflows.models import Run, Status, TriggerState
from workflows.triggers.polls import poll_next
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)


def next_hour(clock: Clock) -> datetime:
    at = now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    move(clock, at + timedelta(seconds=1))
    return at


def test_a_schedule_is_not_held_by_what_a_poll_started_and_tells_nothing_of_it(
    folder: Path, orders: Orders, clock: Clock
) -> None:
    an_agent(folder, orders.url)
    orders.come("a")
    poll_next()
    work()
    assert Run.objects.get().status == Status.AWAITING
    TriggerState.objects.update(failures=3, error="away", lease_until=now() + timedelta(hours=9))
    before = row()
    assert before.last_run is not None
    scheduled(folder, "0 * * * *", agent_id="orders")
    fire_due()
    after = row()
    assert (after.kind, after.last_run, after.failures, after.error, after.retry_at) == ("schedule", None, 0, "", None)
    assert (after.started, after.items, after.new_items, after.fired_at) == (0, None, None, None)
    assert (after.lease_until, after.last_due_at, after.lease_token) == (None, None, before.lease_token + 1)
    due = next_hour(clock)
    assert (fire_due(), row().skipped) == (1, 0)
    assert due_of(Run.objects.latest("id")) == due


def test_a_poll_that_was_a_schedule_is_made_at_once(folder: Path, orders: Orders, clock: Clock) -> None:
    orders.come("a")
    scheduled(folder, "0 * * * *", agent_id="orders")
    fire_due()
    TriggerState.objects.update(failures=3, error="refused", retry_at=now() + timedelta(minutes=5), skipped=4)
    assert row().kind == "schedule"
    an_agent(folder, orders.url)
    assert poll_next()
    one_run_each("a")
    after = row()
    assert (after.kind, after.failures, after.error, after.skipped, after.lock_freed) == ("poll", 0, "", 0, False)
