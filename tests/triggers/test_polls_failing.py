"""A poll that fails moves nothing, says why, backs off, and is told apart from one that works again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from statestore.clock import db_now
from statestore.models import StateRecord
from tests.conftest import Clock
from tests.fakes_tools import Answer
from tests.served import until
from tests.triggers.orders import TRIGGER, Orders, an_agent, cursor, one_run_each, row
from workflows.draining import draining
from workflows.models import Run, TriggerState
from workflows.runs import INPUT_LIMIT
from workflows.spec.trigger_model import ScheduleTrigger
from workflows.triggers import handover, hold, state
from workflows.triggers.polls import poll_next

pytestmark = pytest.mark.django_db(transaction=True)

GONE: Answer = {"status": 500, "json": {}}
ODD = {"orders": [{"id": "a", "at": 1}, {"id": None, "at": 2}]}
LARGE = {"orders": [{"id": "a"}, {"id": "b", "text": "x" * INPUT_LIMIT}]}


def put_off() -> float:
    """For how many seconds."""
    retry_at = row().retry_at
    assert retry_at is not None
    return round((retry_at - db_now()).total_seconds())


def changed(old: str, new: str) -> dict[str, str]:
    assert old in TRIGGER
    return {"trigger": TRIGGER.replace(old, new)}


#: More than the store keeps.
LONG = "\"[$pad('', 600000), $pad('', 600000)]\""
FAILING: list[tuple[Answer, dict[str, str], str]] = [
    (GONE, {}, 'Tool "list_orders": GET '),
    ({"json": ODD}, {}, '"key" of items[1] came to nothing'),
    ({"json": LARGE}, {}, "items[1]: the input has"),
    ({"json": {"orders": ["a"]}}, changed("key: id", "key: $number($)"), '"key" of items[0] failed'),
    ({"json": {}}, changed("items: orders", 'items: "[1..10001]"'), "10001 items"),
    (
        {"json": {}},
        changed('"$max(orders.at)"', LONG),
        '"cursor" came to cannot be',
    ),
    ({}, {"provider": 'openai, api_key: "${OPENAI_API_KEY}"'}, "OPENAI_API_KEY"),
    ({}, {"vars": "vars: {region: {type: string}}\n"}, "vars.region"),
    ({}, {"tool": 'headers: {X-Of: "{{ trigger.id }}"}'}, "the expression evaluated to nothing: trigger.id"),
    ({}, {"tool": 'headers: {X-Of: "${NOT_SET}"}'}, "NOT_SET"),
]


@pytest.mark.parametrize(("answer", "spec", "words"), FAILING)
def test_nothing_moves_and_the_row_says_why(
    folder: Path,
    orders: Orders,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    spec: dict[str, str],
    words: str,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    an_agent(folder, orders.url, **spec)
    orders.first = [answer]
    assert poll_next()
    told = row()
    assert words in told.error
    assert told.error.endswith("The position did not move; it is polled again.")
    assert (told.failures, told.lease_until, told.started, told.fired_at) == (1, None, 0, None)
    assert told.failed_at is not None
    assert told.due_at <= db_now()
    assert 55 <= put_off() <= 60
    assert not Run.objects.exists()
    assert not StateRecord.objects.exists()


def test_it_backs_off_and_works_again(
    folder: Path, orders: Orders, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kampong.scheduler")
    an_agent(folder, orders.url)
    orders.come("a")
    orders.first = [GONE] * 9 + [{"json": ODD}]
    waits = []
    for _ in range(10):
        assert poll_next()
        assert not poll_next()
        waits.append(put_off())
        clock.advance(waits[-1] + 1)
    assert waits == pytest.approx([60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600], abs=5)
    assert row().failures == 10
    assert poll_next()
    told = row()
    assert (told.failures, told.error, told.retry_at, cursor()) == (0, "", None, 1)
    assert told.failed_at is not None
    one_run_each("a")
    said = [(one.levelname, one.getMessage()) for one in caplog.records]
    assert [level for level, _ in said] == ["WARNING", "WARNING", "INFO", "WARNING"]
    assert "status 500" in said[0][1]
    assert "items[1]" in said[1][1]
    assert said[3][1] == "poll of orders: works again after 10 failures"


def test_one_that_is_rare_is_never_made_more_often(folder: Path, orders: Orders) -> None:
    an_agent(folder, orders.url, TRIGGER.replace("1m", "5h"))
    orders.first = [GONE]
    poll_next()
    assert put_off() == pytest.approx(5 * 3600, abs=5)


def test_another_agent_is_polled_all_the_same(folder: Path, orders: Orders) -> None:
    an_agent(folder, "http://127.0.0.1:9", agent_id="away")
    an_agent(folder, orders.url)
    orders.come("a")
    assert [poll_next(), poll_next(), poll_next()] == [True, True, False]
    one_run_each("a")
    assert row("away").failures == 1


def test_the_tool_is_tried_again_as_in_a_run(folder: Path, orders: Orders) -> None:
    an_agent(folder, orders.url, tool="retry: {max: 2, base_ms: 10}")
    orders.come("a")
    orders.first = [GONE, GONE]
    poll_next()
    assert len(orders.asked) == 3
    one_run_each("a")


def test_what_asks_for_a_long_wait_is_left_for_later(folder: Path, orders: Orders) -> None:
    an_agent(folder, orders.url, tool="retry: {max: 2, max_delay_ms: 900000}")
    orders.first = [{"status": 429, "headers": {"Retry-After": "700"}, "json": {}}]
    poll_next()
    told = row()
    assert "status 429" in told.error
    assert "again in 700 s at the earliest" in told.error
    assert put_off() == pytest.approx(700, abs=5)


@pytest.mark.parametrize("tool", ["", "retry: {max: 2}"])
def test_no_server_is_asked_earlier_than_it_said(folder: Path, orders: Orders, tool: str) -> None:
    an_agent(folder, orders.url, tool=tool)
    orders.first = [{"status": 429, "headers": {"Retry-After": "86400"}, "json": {}}, {"json": ODD}]
    poll_next()
    assert put_off() == pytest.approx(86400, abs=5)
    TriggerState.objects.update(retry_at=None)
    poll_next()
    assert put_off() == pytest.approx(120, abs=5), "the second failure was none of the server's"


def test_a_turn_that_is_far_away_is_left_for_later(folder: Path, orders: Orders, clock: Clock) -> None:
    an_agent(folder, orders.url, tool="pace: {rps: 0.01}")
    an_agent(folder, orders.url, tool="pace: {rps: 0.01}", agent_id="other")
    assert [poll_next(), poll_next()] == [True, True]
    assert len(orders.asked) == 1
    late = TriggerState.objects.get(failures=1)
    assert "wait for its turn (pace)" in late.error
    clock.advance(101)
    assert poll_next()


def test_a_process_that_ends_gives_it_back(folder: Path, orders: Orders) -> None:
    an_agent(folder, orders.url, tool="retry: {max: 2, base_ms: 20000}")
    orders.first = [GONE]
    orders.come("a")
    try:
        draining.set()
        assert poll_next()
    finally:
        draining.clear()
    told = row()
    assert (told.failures, told.error, told.lease_until, told.retry_at) == (0, "", None, None)
    assert poll_next(), "by the next process, at once"
    one_run_each("a")


def in_a_thread(act: Callable[[], object]) -> threading.Thread:
    def whole() -> None:
        try:
            act()
        finally:
            connections.close_all()

    thread = threading.Thread(target=whole)
    thread.start()
    return thread


def test_one_whose_lease_ran_out_is_abandoned(folder: Path, orders: Orders, clock: Clock) -> None:
    """The answer comes when somebody else has polled: it starts nothing, moves nothing and counts nowhere."""
    an_agent(folder, orders.url)
    orders.come("a", "b")
    orders.first = [{"held": 60, "json": {"orders": [{"id": "a", "at": 1}, {"id": "late", "at": 99}]}}]
    slow = in_a_thread(poll_next)
    until(lambda: orders.requests)
    assert not poll_next(), "at most one polls an agent at a time"
    clock.advance(30 + hold.SPARE_SECONDS + 1)
    assert poll_next()
    before = TriggerState.objects.values().get()
    orders.let_go()
    slow.join(30)
    assert TriggerState.objects.values().get() == before
    assert cursor() == 2
    one_run_each("a", "b")


def test_an_agent_that_is_polled_no_more_keeps_its_new_times(folder: Path, orders: Orders) -> None:
    spec = an_agent(folder, orders.url)
    orders.come("a")
    orders.first = [{"held": 60, "json": {"orders": orders.orders}}]
    slow = in_a_thread(poll_next)
    until(lambda: orders.requests)
    daily = ScheduleTrigger(cron="0 8 * * *")
    TriggerState.objects.update(
        kind="schedule", definition=state.definition_of(daily), due_at=state.first_due(daily, db_now())
    )
    due_at = row().due_at
    orders.let_go()
    slow.join(30)
    assert (row().due_at, row().kind) == (due_at, "schedule")
    assert not Run.objects.filter(spec_hash=spec.hash).exists()


def test_the_expressions_of_one_answer_have_a_minute_in_all(
    folder: Path, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold, "READING_SECONDS", 0.0)
    an_agent(folder, orders.url)
    orders.come("a")
    poll_next()
    assert "expressions took longer" in row().error
    assert not Run.objects.exists()


def test_what_nobody_foresaw_is_told_without_what_it_broke_on(
    folder: Path, orders: Orders, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The secret stands in the error, and neither in the row nor in the log."""
    monkeypatch.setenv("TOKEN_OF_MINE", "canary-123")
    an_agent(folder, orders.url, tool='headers: {Authorization: "Bearer ${TOKEN_OF_MINE}"}')

    def broken(*_: object) -> None:
        raise ZeroDivisionError("canary-123")

    monkeypatch.setattr(handover.Handover, "hand_over", broken)
    poll_next()
    assert row().error.startswith("unexpected error: ZeroDivisionError; see the log")
    assert "ZeroDivisionError" in caplog.text
    assert "canary" not in caplog.text
