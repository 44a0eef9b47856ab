"""What runs count: each start and end once and only when it is committed, calls and steps, and claims that are lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.db.models import F

from approvals.expiry import expire_due
from approvals.services import decide
from statestore.clock import db_now
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.metering import grown, logged
from tests.workbench import ASKING, PAYING, PAYING_ANSWERS, STARTER, acting, begin, to_pause, work, write_spec
from workflows.advance import advance, claim
from workflows.metrics import gauges
from workflows.metrics.counters import OTHERS, Counter, Gauge, Histogram, Labels, Limited
from workflows.metrics.runs import CALLS, CLAIMS_LOST, ENDED, STARTED, STEPS
from workflows.models import Run, Status
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.runs import cancel_run, give_up_run, start_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(PAYING_ANSWERS) as fake:
        yield fake


@pytest.fixture
def paying(tmp_path: Path, tools: FakeTools, monkeypatch: pytest.MonkeyPatch) -> SpecFile:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    return write_spec(tmp_path, PAYING, url=tools.url)


def test_a_run_counts_its_start_its_calls_and_its_end_once(paying: SpecFile, tools: FakeTools, people: People) -> None:
    tools.script["GET /invoice"] = {"json": {"amount": 120}, "headers": {"X-Kind": "a"}}
    with grown(STARTED) as started, grown(ENDED) as ended, grown(CALLS) as calls, grown(STEPS) as steps:
        _, key = to_pause(paying)
        decide(key, approved=True, actor=acting(people.approver))
        work()
    assert started == {("clerk", "api"): 1}
    assert ended == {("completed", "clerk"): 1}
    assert calls == {("tool", "ok"): 3}
    assert steps == {("tool",): 3}


def test_a_step_that_fails_is_measured_as_well(paying: SpecFile, tools: FakeTools) -> None:
    tools.script["GET /invoice"] = {"status": 500}
    with grown(ENDED) as ended, grown(CALLS) as calls, grown(STEPS) as steps, logged("kampong.runs") as lines:
        run = begin(paying)
        work()
    assert (ended, calls, steps) == ({("failed", "clerk"): 1}, {("tool", "failed"): 1}, {("tool",): 1})
    assert [line["message"] for line in lines] == ["run started (api)", "run ended: failed"]
    assert {line["run"] for line in lines} == {str(run.uuid)}
    assert lines[1]["step"] == "look"


def test_every_way_to_end_is_counted_by_its_name(tmp_path: Path, people: People, clock: Clock) -> None:
    asking = write_spec(tmp_path, ASKING, agent_id="asker", name="asker.yaml")
    operator = acting(people.operator)
    with grown(ENDED) as ended:
        cancel_run(begin(asking), actor=operator)
        cancel_run(to_pause(asking)[0], actor=operator)
        decide(to_pause(asking)[1], approved=False, actor=acting(people.approver))
        to_pause(asking)
        clock.advance(8 * 24 * 3600)
        assert expire_due() == 1
        lost = begin(asking)
        Run.objects.filter(pk=lost.pk).update(takeovers=2)
        assert claim("default", str(lost.uuid)) is not None
        clock.advance(61)
        assert recover().interrupted == 1
        give_up_run(lost, actor=operator, reason="so")
    told = {"cancelled": 2, "rejected": 1, "expired": 1, "interrupted": 1, "failed": 1}
    assert ended == {(status, "asker"): number for status, number in told.items()}


def test_what_is_rolled_back_was_never_counted(paying: SpecFile) -> None:
    with grown(STARTED) as started, grown(ENDED) as ended, logged("kampong.runs") as lines, transaction.atomic():
        cancel_run(start_run(paying, input="", actor=STARTER).run, actor=STARTER)
        transaction.set_rollback(True)
    assert (started, ended, lines) == ({}, {}, [])


def test_a_run_cancelled_under_its_worker_is_a_lost_claim_and_the_line_names_run_and_step(
    paying: SpecFile, tools: FakeTools, people: People
) -> None:
    tools.script["GET /invoice"] = {"json": {"amount": 1}, "hang": 60}
    run = begin(paying)
    with grown(CLAIMS_LOST) as lost, grown(ENDED) as ended, logged("kampong.driver") as lines:
        worker = threading.Thread(target=_driven, args=(run,))
        worker.start()
        while not tools.requests:
            worker.join(0.01)
        cancel_run(run, actor=acting(people.operator))
        tools.closing.set()
        worker.join(60)
    assert lost == {("lease",): 1}
    assert ended == {("cancelled", "clerk"): 1}
    (line,) = lines
    bound = {"run": str(run.uuid), "agent": "clerk", "workspace": "default", "step": "look"}
    assert {name: line[name] for name in bound} == bound


def _driven(run: Run) -> None:
    try:
        advance(run.workspace, str(run.uuid))
    finally:
        connections.close_all()


def test_a_queued_run_that_another_worker_took_first_is_a_lost_claim(tmp_path: Path) -> None:
    run = begin(write_spec(tmp_path, ASKING))
    taken = Run.objects.filter(pk=run.pk)

    others = [lambda: taken.update(lease_token=F("lease_token") + 1)]

    def overtake(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith("UPDATE") and others:
            others.pop()()
        return execute(sql, *rest)

    with grown(CLAIMS_LOST) as lost, connection.execute_wrapper(overtake):
        assert claim("default", str(run.uuid)) is None
    assert lost == {("run",): 1}


def test_the_age_of_the_queue_is_not_made_young_by_sending_again(tmp_path: Path, clock: Clock) -> None:
    run = begin(write_spec(tmp_path, ASKING))
    later = begin(write_spec(tmp_path, ASKING))
    Run.objects.filter(pk=later.pk).update(not_before=db_now() + timedelta(seconds=500))
    clock.advance(100)
    assert recover().resent == 1
    assert 100 <= read()[gauges.QUEUE_OLDEST, ()] < 130
    assert read()[gauges.QUEUE_DEPTH, ()] == 1, "one waits for its time"
    clock.advance(500)
    assert read()[gauges.QUEUE_DEPTH, ()] == 2
    Run.objects.filter(pk=run.pk).update(status=Status.CANCELLED)
    assert 100 <= read()[gauges.QUEUE_OLDEST, ()] < 130, "it is due since its time came"
    Run.objects.filter(pk=later.pk).update(started_at=db_now(), queued_at=db_now(), not_before=None)
    assert read()[gauges.QUEUE_OLDEST, ()] < 30, "given back just now"


def read() -> dict[tuple[Gauge, Labels], float]:
    """What the gauges of runs say now."""
    return {(gauge, labels): number for gauge, labels, number in gauges.read(db_now())}


def test_counters_lose_nothing_under_threads() -> None:
    counter, histogram = Counter("a_total", "a", ("b",)), Histogram("c", "c", (), (1.0, 2.0))
    barrier = threading.Barrier(8)

    def count_up() -> None:
        barrier.wait(30)
        for number in range(2000):
            counter.add("x")
            histogram.observe(number % 4 - 0.0)

    threads = [threading.Thread(target=count_up) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counter.numbers() == {("x",): 16_000}
    (spread,) = histogram.spreads().values()
    assert spread.counts == (8000, 4000, 4000), "a bound is the last number of its bucket"
    assert spread.total == 8 * 500 * 6


def test_names_without_end_are_counted_together() -> None:
    limited = Limited(2)
    assert [limited.name(name) for name in ("a", "b", "c", "a", "d")] == ["a", "b", OTHERS, "a", OTHERS]
