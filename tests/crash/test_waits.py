"""A worker that dies, ends or is replaced while it waits to try again: nothing is lost, nothing is called too often."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest
from django.db import connections

from tests.conftest import Clock, People, Processes
from tests.crash.conftest import Child, dies
from tests.crash.waiting import asked, outcomes, told, waiting_spec
from tests.fakes_tools import FakeTools
from tests.served import until
from tests.workbench import acting, begin, work
from workflows.advance import advance
from workflows.models import Run, Status
from workflows.recovery import recover
from workflows.runs import cancel_run
from workflows.waiting import awaited

pytestmark = pytest.mark.django_db(transaction=True)

ONCE = ["step_started", "step_completed", "step_started", "step_completed", "completed"]


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "place")


def test_killed_while_it_waits_it_is_taken_over_when_its_time_has_come(
    tmp_path: Path, tools: FakeTools, clock: Clock, child: Child
) -> None:
    run = begin(waiting_spec(tmp_path, tools, wait=30))
    dies(child("advance", str(run.uuid), faults="run.waiting=kill", PLACE="place", KAMPONG_LEASE_SECONDS="1.5"))
    assert outcomes(run) == ["503"], "closed before the wait: its fate is known"
    clock.advance(5)
    assert recover().requeued == 1
    run.refresh_from_db()
    assert (run.status, run.takeovers) == (Status.QUEUED, 1)
    advance("default", str(run.uuid))
    assert asked(tools) == 1, "not before its time"
    clock.advance(31)
    assert work() == 1
    run.refresh_from_db()
    assert (run.status, run.not_before) == (Status.COMPLETED, None)
    assert outcomes(run) == ["503", "ok", "ok"]
    assert told(run) == ONCE


def test_killed_in_every_wait_it_makes_no_attempt_more(
    tmp_path: Path, tools: FakeTools, clock: Clock, child: Child
) -> None:
    run = begin(waiting_spec(tmp_path, tools, wait=30, busy=9))
    for _ in range(2):
        dies(child("advance", str(run.uuid), faults="run.waiting=kill", PLACE="place"))
        clock.advance(61)
        assert recover().requeued == 1
    work()
    run.refresh_from_db()
    assert run.status == Status.FAILED
    assert run.error.endswith("Gave up after 3 attempts.")
    assert (asked(tools), outcomes(run)) == (3, ["503"] * 3)
    assert told(run) == ["step_started", "failed"]


def test_told_to_end_while_it_waits_it_gives_the_run_back_with_its_time(
    tmp_path: Path, tools: FakeTools, clock: Clock, manage: Processes
) -> None:
    run = begin(waiting_spec(tmp_path, tools, wait=50))
    worker = manage.start("worker", env={"PLACE": "place"})
    until(lambda: Run.objects.get(pk=run.pk).not_before)
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=30)
    assert (worker.returncode, err) == (0, "")
    run.refresh_from_db()
    assert (run.status, run.lease_until, run.takeovers, outcomes(run)) == (Status.QUEUED, None, 0, ["503"])
    assert work() == 0
    clock.advance(51)
    assert work() == 1
    run.refresh_from_db()
    assert (run.status, asked(tools)) == (Status.COMPLETED, 2)
    assert told(run) == ONCE


def test_a_worker_that_slept_through_its_lease_in_a_wait_calls_nothing(
    tmp_path: Path, tools: FakeTools, clock: Clock, child: Child
) -> None:
    run = begin(waiting_spec(tmp_path, tools, wait=2))
    sleeper = child("advance", str(run.uuid), PLACE="place", KAMPONG_LEASE_SECONDS="1", KAMPONG_HEARTBEAT_SECONDS="60")
    until(lambda: Run.objects.get(pk=run.pk).not_before)
    clock.advance(5)
    assert recover().requeued == 1
    assert work() == 1
    sleeper.wait()
    assert sleeper.returncode == 0
    run.refresh_from_db()
    assert (run.status, asked(tools)) == (Status.COMPLETED, 2)
    assert told(run) == ONCE


@pytest.mark.parametrize("wait", [1.5, 60])
def test_cancelled_while_it_waits_it_calls_nothing_more_and_frees_its_worker(
    wait: float, tmp_path: Path, tools: FakeTools, people: People
) -> None:
    run = begin(waiting_spec(tmp_path, tools, wait=wait))

    def drive() -> None:
        try:
            advance("default", str(run.uuid))
        finally:
            connections.close_all()

    worker = threading.Thread(target=drive)
    worker.start()
    until(lambda: Run.objects.get(pk=run.pk).not_before)
    assert awaited(Run.objects.get(pk=run.pk)).endswith(", before attempt 2")
    cancel_run(run, actor=acting(people.operator), reason="not needed")
    worker.join(30)
    assert not worker.is_alive()
    run.refresh_from_db()
    assert awaited(run) == ""
    assert (run.status, asked(tools), outcomes(run)) == (Status.CANCELLED, 1, ["503"])
    assert told(run) == ["step_started", "cancelled"]


def test_a_short_wait_is_waited_in_the_worker(tmp_path: Path, tools: FakeTools) -> None:
    run = begin(waiting_spec(tmp_path, tools, wait=0.3, busy=2))
    began = time.monotonic()
    advance("default", str(run.uuid))
    assert time.monotonic() - began >= 0.6
    run.refresh_from_db()
    assert (run.status, run.lease_token, outcomes(run)) == (Status.COMPLETED, 1, ["503", "503", "ok", "ok"])
    assert told(run) == ONCE
