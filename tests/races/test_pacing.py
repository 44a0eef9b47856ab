"""Paced calls are their interval apart, whichever thread or process makes them; who waits loses no slot (14.7)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection, connections

from tests.conftest import Clock, Processes
from tests.counts import count
from tests.fakes_tools import FakeTools
from tests.served import until
from tests.workbench import HEAD, begin, work, write_spec
from workflows import pacing
from workflows.advance import advance
from workflows.models import Attempt, PaceSlot, Run, RunEvent, Status
from workflows.pacing import DatabasePacer
from workflows.registry import SpecFile
from workflows.times import rfc3339
from workflows.waiting import awaited

pytestmark = pytest.mark.django_db(transaction=True)

PACED = (
    HEAD
    + """\
  tools:
    - {{name: look, action: http_request, method: GET, url: "{url}/invoice", pace: {{rps: {rps}}}}}
  workflow:
    - {{step: look, type: tool, tool: look}}
"""
)
UNPACED = PACED.replace(", pace: {{rps: {rps}}}", "")


def paced(folder: Path, tools: FakeTools, rps: float) -> SpecFile:
    return write_spec(folder, PACED, url=tools.url, rps=str(rps))


def apart(tools: FakeTools, interval: float) -> None:
    """So many calls cannot have arrived in less time: any two of them, give or take one interval of noise."""
    times = sorted(request.at for request in tools.requests)
    for first in range(len(times)):
        for last in range(first + 1, len(times)):
            assert times[last] - times[first] >= (last - first - 1) * interval, (first, last, times)


def test_three_processes_share_the_slots_of_a_host(
    folder: Path, tools: FakeTools, manage: Processes, report: Callable[[str], None]
) -> None:
    # An interval is longer than the first call of a process takes to set out on a busy machine.
    interval, calls = 1.0, count(5, 7)
    spec = paced(folder, tools, 1 / interval)
    workers = [manage.start("worker", "--workers", "2") for _ in range(3)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline().startswith("Working")
    runs = [begin(spec) for _ in range(calls)]
    until(lambda: Run.objects.filter(status=Status.COMPLETED).count() == calls, 60)
    apart(tools, interval)
    times = [request.at for request in tools.requests]
    took = max(times) - min(times)
    assert took >= (calls - 2) * interval
    report(f"{calls} calls of 3 processes at one each {interval} s took {took:.2f} s")
    owners = set(Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("lease_token", flat=True))
    assert owners == {1}
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    assert [worker.wait(30) for worker in workers] == [0, 0, 0]


def test_threads_that_come_at_once_get_one_slot_each() -> None:
    pacer, threads, each = DatabasePacer("default"), 8, 5
    ahead: list[float] = []
    began = time.monotonic()

    def one() -> None:
        try:
            for _ in range(each):
                ahead.append(pacer.take("target", 100.0))
        finally:
            connections.close_all()

    started = [threading.Thread(target=one) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
    took = time.monotonic() - began
    assert len(ahead) == threads * each
    for number, seconds in enumerate(sorted(ahead)):
        # The database's clock may be set while a monotonic one is not.
        assert number * 100 - took - 5 <= seconds <= number * 100


def test_another_workspace_and_another_target_have_slots_of_their_own() -> None:
    assert DatabasePacer("default").take("a", 100) == 0
    assert DatabasePacer("other").take("a", 100) == 0
    assert DatabasePacer("default").take("b", 100) == 0
    assert DatabasePacer("default").take("a", 100) > 99


@pytest.fixture
def three(folder: Path, tools: FakeTools) -> list[Run]:
    """Three runs whose calls are a hundred seconds apart: the first has called, the others gave their workers back."""
    spec = paced(folder, tools, 0.01)
    runs = [begin(spec) for _ in range(3)]
    work()
    return runs


def statuses(runs: list[Run]) -> list[str]:
    return [str(Run.objects.get(pk=run.pk).status) for run in runs]


def free_at() -> int:
    return PaceSlot.objects.get().free_at


def test_a_slot_that_is_far_away_releases_the_worker_and_stays_taken(
    three: list[Run], tools: FakeTools, clock: Clock
) -> None:
    assert statuses(three) == ["completed", "queued", "queued"]
    assert Attempt.objects.count() == 1, "an attempt begins when the slot has come"
    second = Run.objects.get(pk=three[1].pk)
    assert second.not_before is not None
    assert awaited(second) == f"until {rfc3339(second.not_before)} for its turn (pace), before attempt 1"
    taken = free_at()
    for left in (["queued", "queued"], ["completed", "queued"], ["completed", "completed"]):
        assert statuses(three)[1:] == left
        work()
        assert statuses(three)[1:] == left
        clock.advance(101)
        work()
    assert free_at() == taken, "nobody took a second slot"
    assert len(tools.requests) == 3
    for run in three:
        kinds = RunEvent.objects.filter(run=run).order_by("number").values_list("type", flat=True)
        assert list(kinds) == ["step_started", "step_completed", "completed"]


def test_slots_that_were_missed_do_not_come_all_at_once(three: list[Run], tools: FakeTools, clock: Clock) -> None:
    clock.advance(1000)
    work()
    assert statuses(three) == ["completed", "completed", "queued"]
    clock.advance(101)
    work()
    assert statuses(three) == ["completed"] * 3
    assert len(tools.requests) == 3


def test_told_to_end_while_it_waits_for_its_slot_it_keeps_it(
    folder: Path, tools: FakeTools, clock: Clock, manage: Processes
) -> None:
    spec = paced(folder, tools, 1 / 50)
    begin(spec)
    work()
    run = begin(spec)
    worker = manage.start("worker")
    until(lambda: free_at() - PaceSlot.objects.get().open_at > 49_000_000)
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=30)
    assert (worker.returncode, err) == (0, "")
    taken = free_at()
    assert statuses([run]) == ["queued"]
    assert work() == 0
    clock.advance(51)
    assert work() == 1
    assert statuses([run]) == ["completed"]
    assert free_at() == taken


def test_without_pace_nothing_is_taken_and_nothing_waits(folder: Path, tools: FakeTools) -> None:
    spec = write_spec(folder, UNPACED, url=tools.url)
    for _ in range(3):
        begin(spec)
    work()
    assert not PaceSlot.objects.exists()
    assert Run.objects.filter(status=Status.COMPLETED).count() == 3


def test_no_row_names_a_host(folder: Path, tools: FakeTools) -> None:
    begin(paced(folder, tools, 100))
    work()
    assert "127.0.0.1" not in PaceSlot.objects.get().target


def test_targets_that_were_not_called_for_a_day_are_forgotten(clock: Clock) -> None:
    DatabasePacer("default").take("old", 10)
    assert pacing.prune() == 0
    clock.advance(24 * 3600 + 11)
    DatabasePacer("default").take("new", 10)
    assert pacing.prune() == 1
    assert PaceSlot.objects.get().target == "new"


class Looking:
    """A clock that looks, while it sleeps, whether a transaction is open."""

    def __init__(self) -> None:
        self.open: list[bool] = []

    def sleep(self, seconds: float) -> None:
        self.open.append(connection.in_atomic_block)
        time.sleep(seconds)


def test_no_transaction_is_open_while_a_run_waits(
    folder: Path, tools: FakeTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = Looking()
    monkeypatch.setattr("workflows.waits.ProcessClock.sleep", lambda clock, seconds: looking.sleep(seconds))
    spec = paced(folder, tools, 1)  # a second apart: a busy machine has to wait as well
    for _ in range(3):
        advance("default", str(begin(spec).uuid))
    assert len(looking.open) >= 2
    assert not any(looking.open)
