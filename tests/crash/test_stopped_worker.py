"""A worker stopped past its lease and woken after its replacement finished writes nothing and calls nothing more."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from approvals.services import decide
from tests.conftest import People
from tests.crash.conftest import Child
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause, work
from workflows.models import Run, RunEvent, Status
from workflows.reading import run_state
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.runs import retry_run

pytestmark = pytest.mark.django_db(transaction=True)


def until(true: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for a condition, not for luck."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


def stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize(
    ("point", "calls"), [("run.before_attempt", 0), ("run.attempt_open", 0), ("run.called", 1), ("run.before_event", 1)]
)
def test_it_meets_the_fence(
    point: str, calls: int, spec: SpecFile, tools: FakeTools, people: People, child: Child
) -> None:
    run, key = to_pause(spec)
    successor = decide(key, approved=True, actor=acting(people.approver)).run
    sleeper = child("advance", str(successor.uuid), faults=f"{point}=stop", KAMPONG_LEASE_SECONDS="1.5")
    until(lambda: stopped(sleeper.pid))
    before = len(tools.requests)
    assert before == 1 + calls
    until(lambda: sum(vars(recover()).values()) > 0)
    successor.refresh_from_db()
    if successor.status == Status.INTERRUPTED:
        retry_run(successor, actor=acting(people.operator), reason="looked it up")
    work()
    assert run_state(run)["status"] == "completed"
    requests, events = len(tools.requests), RunEvent.objects.count()
    rows = list(Run.objects.order_by("id").values("status", "lease_token", "last_event", "outputs"))
    os.kill(sleeper.pid, signal.SIGCONT)
    said = sleeper.wait()
    assert sleeper.returncode == 0, said
    assert (len(tools.requests), RunEvent.objects.count()) == (requests, events)
    assert list(Run.objects.order_by("id").values("status", "lease_token", "last_event", "outputs")) == rows
