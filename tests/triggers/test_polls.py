"""A poll hands each item of its answers to one run, moves its position with them, and is made when it is due."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from statestore.clock import db_now
from statestore.models import StateRecord
from tests.conftest import Clock
from tests.counts import count
from tests.triggers.orders import TRIGGER, Orders, an_agent, bodies, cursor, ids, one_run_each, row, seen
from workflows.engine import jsontext
from workflows.engine.polling import MOST_ITEMS
from workflows.models import Run, SpecVersion, Status
from workflows.triggers import handover
from workflows.triggers.polls import poll_next

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_item_gets_a_run_and_the_next_poll_goes_on_from_the_position(
    folder: Path, orders: Orders, clock: Clock
) -> None:
    spec = an_agent(folder, orders.url)
    orders.come("a", "b")
    assert poll_next()
    assert bodies() == [{"id": "a", "at": 1}, {"id": "b", "at": 2}]
    assert cursor() == 2
    assert not poll_next(), "it is due a minute after the end of the last"
    orders.come("c")
    clock.advance(61)
    assert poll_next()
    assert orders.asked == ["", "2"]
    one_run_each("a", "b", "c")
    run = Run.objects.order_by("id").last()
    assert run is not None
    assert (run.input, run.started_by, run.surface) == ('{"id":"c","at":3}', "poll of orders", "poll")
    assert (run.status, run.spec_hash, run.started_by_user) == (Status.QUEUED, spec.hash, None)
    assert SpecVersion.objects.count() == 1


def test_the_row_tells_what_became_of_it(folder: Path, orders: Orders) -> None:
    an_agent(folder, orders.url)
    orders.come("a", "b")
    before = db_now()
    poll_next()
    told, run = row(), Run.objects.order_by("id").last()
    assert (told.kind, told.items, told.new_items, told.started) == ("poll", 2, 2, 2)
    assert (told.last_run, told.lease_until, told.retry_at, told.failures, told.error) == (run, None, None, 0, "")
    assert told.fired_at is not None
    assert before <= told.fired_at <= db_now()
    assert abs(told.due_at - told.fired_at - timedelta(seconds=60)) < timedelta(seconds=1)
    assert told.last_due_at is not None
    assert told.last_due_at < told.due_at


def test_of_a_key_only_its_fingerprint_is_kept(folder: Path, orders: Orders) -> None:
    an_agent(folder, orders.url)
    orders.come("ana@example.org")
    poll_next()
    name = "seen:" + hashlib.sha256(b"ana@example.org").hexdigest()
    entry = StateRecord.objects.get(key=name)
    assert jsontext.loads(entry.value) == {"run": str(Run.objects.get().uuid)}
    assert entry.expires_at is not None
    assert abs((entry.expires_at - entry.created_at) - timedelta(days=30)) < timedelta(seconds=1)
    position = StateRecord.objects.get(key="cursor:poll")
    assert position.expires_at is None


def test_an_answer_without_news_costs_little(folder: Path, orders: Orders, clock: Clock) -> None:
    an_agent(folder, orders.url, "every: 1m, tool: list_orders, items: orders, key: id")
    orders.come(*map(str, range(50)))
    poll_next()
    clock.advance(61)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert poll_next()
    wrote = [one["sql"] for one in asked if one["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert len(wrote) == 5, wrote  # the claim, before and after the call, the fence, the end
    assert {sql.split()[1].strip('"') for sql in wrote} == {"workflows_triggerstate"}
    assert len(asked) < 16
    assert (row().items, row().new_items, row().started) == (50, 0, 50)


def test_an_answer_goes_in_batches(folder: Path, orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven items by four are three transactions, each with its fence."""
    monkeypatch.setattr(handover, "BATCH", 4)
    names = [f"o{number}" for number in range(11)]
    an_agent(folder, orders.url)
    orders.come(*names)
    with CaptureQueriesContext(connection) as asked:
        poll_next()
    one_run_each(*names)
    fences = [one["sql"] for one in asked if one["sql"].startswith("UPDATE") and "lease_until" in one["sql"]]
    assert len(fences) == 3 + 3 + 1  # the claim, before and after the call; one a batch; the end
    assert (row().items, row().started) == (11, 11)
    assert ids() == names


def test_the_largest_answer_that_there_may_be(
    folder: Path, orders: Orders, clock: Clock, report: Callable[[str], None]
) -> None:
    names = [f"o{number}" for number in range(count(30, MOST_ITEMS))]
    an_agent(folder, orders.url, "every: 1m, tool: list_orders, items: orders, key: id")
    orders.come(*names)
    took = []
    for _ in range(2):
        begun = time.monotonic()
        assert poll_next()
        took.append(time.monotonic() - begun)
        clock.advance(61)
        one_run_each(*names)
        assert (row().items, row().started) == (len(names), len(names))
    report(f"{len(names)} items: {took[0]:.1f} s when all are new, {took[1]:.1f} s when none is")


def test_two_of_one_key_in_an_answer_are_one(folder: Path, orders: Orders) -> None:
    an_agent(folder, orders.url)
    orders.come("a", "b", "a")
    poll_next()
    assert bodies() == [{"id": "a", "at": 1}, {"id": "b", "at": 2}]
    assert (row().items, row().new_items, cursor()) == (3, 2, 3)


def test_a_number_and_its_text_are_one_key(folder: Path, orders: Orders, clock: Clock) -> None:
    an_agent(folder, orders.url)
    orders.first = [{"json": {"orders": [{"id": 7}]}}, {"json": {"orders": [{"id": "7"}, {"id": 7.0}, {"id": 8}]}}]
    poll_next()
    clock.advance(61)
    poll_next()
    assert ids() == [7, 8]


def test_an_item_that_stays_in_every_answer_stays_known(folder: Path, orders: Orders, clock: Clock) -> None:
    """Its key is given a lifetime from now on when half of it is over; what goes away and comes back later is new."""
    an_agent(folder, orders.url, "every: 10m, tool: list_orders, items: orders, key: id, seen_ttl: 1h")
    orders.come("stays", "goes")
    poll_next()
    gone = orders.orders.pop()
    renewed = 0
    for _ in range(12):
        before = StateRecord.objects.get(value=value_of("stays")).version
        clock.advance(601)
        assert poll_next()
        renewed += StateRecord.objects.get(value=value_of("stays")).version - before
    assert renewed == 4
    one_run_each("stays", "goes")
    orders.orders.append(gone)
    clock.advance(601)
    poll_next()
    assert ids() == ["stays", "goes", "goes"]
    assert len(seen()) == 2


def value_of(name: str) -> str:
    run = next(run for run in Run.objects.order_by("id") if jsontext.loads(run.trigger)["body"]["id"] == name)
    return jsontext.dumps({"run": str(run.uuid)})


def test_a_poll_that_was_missed_for_long_is_one_poll(folder: Path, orders: Orders, clock: Clock) -> None:
    an_agent(folder, orders.url)
    poll_next()
    clock.advance(7 * 24 * 3600)
    assert poll_next()
    assert not poll_next()
    assert len(orders.asked) == 2


def test_the_longest_due_comes_first_and_each_agent_has_its_own(folder: Path, orders: Orders, clock: Clock) -> None:
    for agent_id, every in (("one", "1m"), ("two", "3m")):
        an_agent(folder, orders.url, TRIGGER.replace("1m", every), agent_id=agent_id)
    orders.come("a")
    assert [poll_next(), poll_next(), poll_next()] == [True, True, False]
    assert sorted(Run.objects.values_list("agent_id", flat=True)) == ["one", "two"]
    assert len(seen()) == 2
    clock.advance(61)
    assert [poll_next(), poll_next()] == [True, False]
    clock.advance(130)
    orders.come("b")
    assert [poll_next(), poll_next(), poll_next()] == [True, True, False]
    assert (cursor("one"), cursor("two")) == (2, 2)


def test_a_file_that_is_gone_or_broken_is_not_polled_and_goes_on_where_it_was(
    folder: Path, orders: Orders, clock: Clock
) -> None:
    path = an_agent(folder, orders.url).path
    orders.come("a")
    poll_next()
    text = path.read_text()
    clock.advance(61)
    for away in (path.unlink, lambda: path.write_text("agent: [")):
        away()
        assert not poll_next()
    path.write_text(text)
    orders.come("b")
    assert poll_next()
    assert orders.asked == ["", "1"]
    one_run_each("a", "b")


def test_processes_with_different_files_poll_no_more_often_than_one_of_them(
    folder: Path, orders: Orders, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kampong.scheduler")

    def in_turns() -> int:
        """Two that look at once, one with a file that polls every minute, one with another; how often it is asked."""
        before = len(orders.asked)
        for trigger in (TRIGGER, TRIGGER.replace("1m", "5m")) * 3:
            an_agent(folder, orders.url, trigger)
            poll_next()
        return len(orders.asked) - before

    assert in_turns() == 1
    assert "poll of orders: its file says another time; due at" in caplog.text
    orders.first = [{"status": 500, "json": {}}]
    clock.advance(61)
    assert in_turns() == 1
    assert row().failures == 1
    clock.advance(61)
    assert (in_turns(), row().failures) == (1, 0)


def test_without_a_position_every_poll_asks_from_the_beginning(folder: Path, orders: Orders, clock: Clock) -> None:
    an_agent(folder, orders.url, "every: 1m, tool: list_orders, items: orders, key: id")
    orders.come("a")
    poll_next()
    clock.advance(61)
    poll_next()
    assert orders.asked == ["", ""]
    assert cursor() is None
    one_run_each("a")


def test_vars_are_those_of_a_run(folder: Path, orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGION", "west")
    trigger = 'every: 1m, tool: list_orders, items: "orders[where = $$.vars.region]", key: "$join([vars.region, id])"'
    an_agent(folder, orders.url, trigger, vars='vars: {region: {type: string, default: "${REGION}"}}\n')
    orders.come("a", "b", "c")
    for order, where in zip(orders.orders, ("west", "east", "west"), strict=True):
        order["where"] = where
    poll_next()
    assert row().error == ""
    assert ids() == ["a", "c"]
    assert "vars" not in bodies()[0]
    assert StateRecord.objects.filter(key="seen:" + hashlib.sha256(b"westa").hexdigest()).exists()
