"""A clock that is set back by an hour: no trigger is silent for that long, and no due time is fired twice."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from statestore.clock import db_now
from tests.conftest import Clock
from tests.triggers import scheduling
from tests.triggers.orders import TRIGGER, Orders, an_agent, one_run_each, row
from tests.triggers.scheduling import CLOUD, move, scheduled, started
from tests.triggers.timewalk import utc
from tests.workbench import work
from workflows.models import TriggerState
from workflows.triggers.hold import Hold
from workflows.triggers.polls import poll_next
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)
START = utc("2026-11-27 06:00")
HOUR = timedelta(hours=1)


def seconds_to(moment: Any) -> float:
    """How far away that is, by the clock of every query."""
    return float((moment - db_now()).total_seconds())


def test_a_poll_is_made_after_its_interval(folder: Path, orders: Orders, clock: Clock) -> None:
    an_agent(folder, orders.url)
    assert poll_next()
    clock.advance(-3600)
    orders.come("a")
    assert not poll_next()
    assert seconds_to(row().due_at) <= 60
    clock.advance(61)
    assert poll_next()
    one_run_each("a")


def test_one_that_failed_waits_as_long_as_it_did(folder: Path, orders: Orders, clock: Clock) -> None:
    an_agent(folder, orders.url, TRIGGER.replace("1m", "10m"))
    orders.first = [{"status": 500, "json": {}}]
    assert poll_next()
    clock.advance(-3600)
    assert not poll_next()
    assert 590 <= seconds_to(row().retry_at) <= 600
    clock.advance(601)
    assert poll_next()
    assert row().failures == 0


def test_a_poll_whose_process_is_gone_is_free_after_one_lease(folder: Path, orders: Orders, clock: Clock) -> None:
    an_agent(folder, orders.url)
    assert poll_next()
    clock.advance(61)
    assert Hold.claim(row()) is not None
    clock.advance(-3600)
    assert not poll_next()
    lease = row().lease_until
    assert lease is not None
    assert seconds_to(lease) <= 106
    clock.advance(107)
    assert poll_next()


def test_one_that_is_being_polled_keeps_its_lease(folder: Path, orders: Orders, clock: Clock) -> None:
    an_agent(folder, orders.url)
    assert poll_next()
    clock.advance(61)
    assert Hold.claim(row()) is not None
    before = TriggerState.objects.values().get()
    assert not poll_next()
    assert TriggerState.objects.values().get() == before


def test_a_due_time_that_ran_does_not_run_again_and_a_refused_one_is_tried_in_time(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCHEDULE_KEY", raising=False)
    scheduled(folder, "*/10 * * * *", agent_id="a", model=CLOUD)
    scheduled(folder, "*/10 * * * *", agent_id="b")
    move(clock, START - HOUR)
    fire_due()
    move(clock, START)
    assert fire_due() == 1
    work()
    clock.advance(-3600)
    monkeypatch.setenv("SCHEDULE_KEY", "sk-test")
    fire_due()
    retry_at = scheduling.row("a").retry_at
    assert retry_at is not None
    assert seconds_to(retry_at) <= 5
    for minutes in range(0, 60, 10):
        move(clock, START - HOUR + timedelta(minutes=minutes, seconds=10))
        fire_due()
    assert started("b") == [START]
    move(clock, START + timedelta(minutes=10, seconds=1))
    fire_due()
    assert started("b") == [START, START + timedelta(minutes=10)]


def test_a_schedule_that_was_first_seen_at_a_wrong_time_is_due_by_the_right_one(folder: Path, clock: Clock) -> None:
    scheduled(folder, "0 * * * *")
    move(clock, START + 999 * HOUR)
    fire_due()
    move(clock, START)
    assert fire_due() == 0
    assert scheduling.row().due_at == START + HOUR
