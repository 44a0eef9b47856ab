"""However many workers are sent to a run, one drives it; and a worker that breaks in the middle says at which step."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections

from approvals.services import decide
from tests.conftest import Clock, People
from tests.counts import count
from tests.crash.conftest import Child
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, to_pause, work
from workflows.adapters import http
from workflows.advance import advance, claim
from workflows.engine.effects import HttpCall, ToolFailed, ToolOutput
from workflows.models import Attempt, Run, RunEvent, Status
from workflows.reading import run_state
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.runs import cancel_run, newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = count(10, 50)


def test_two_processes_sent_to_one_run_drive_it_once(
    spec: SpecFile, tools: FakeTools, people: People, child: Child
) -> None:
    run, key = to_pause(spec)
    successor = decide(key, approved=True, actor=acting(people.approver)).run
    both = [child("advance", str(successor.uuid), faults="run.lease_taken=sleep:0.5") for _ in range(2)]
    for process in both:
        assert process.wait() == ""
        assert process.returncode == 0
    assert run_state(run)["status"] == "completed"
    assert [request.method for request in tools.requests] == ["GET", "POST", "POST"]
    successor.refresh_from_db()
    assert successor.lease_token == 1, "claimed once"


def test_eight_threads_sent_to_one_run_drive_it_once(spec: SpecFile, tools: FakeTools) -> None:
    for number in range(1, ROUNDS + 1):
        run = begin(spec)
        barrier = threading.Barrier(8)

        def one(run_id: str = str(run.uuid), barrier: threading.Barrier = barrier) -> None:
            barrier.wait(30)
            try:
                advance("default", run_id)
            finally:
                connections.close_all()

        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        run.refresh_from_db()
        assert (run.status, run.lease_token) == (Status.AWAITING, 1)
        assert len(tools.requests) == number
        numbers = list(RunEvent.objects.filter(run=run).order_by("number").values_list("number", flat=True))
        assert numbers == list(range(1, len(numbers) + 1))


@contextmanager
def meanwhile(moment: str, do: Callable[[], object]) -> Iterator[None]:
    """Do something just `before` or just `after` the next update of a run reaches the database."""
    waiting = [do]

    def around(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        then = waiting.pop() if waiting and sql.startswith('UPDATE "workflows_run"') else None
        if then and moment == "before":
            then()
        answer = execute(sql, params, many, context)
        if then and moment == "after":
            then()
        return answer

    with connection.execute_wrapper(around):
        yield
    assert not waiting


def test_a_worker_held_up_in_its_claim_does_not_take_another_thread_s_for_its_own(spec: SpecFile, clock: Clock) -> None:
    run = begin(spec)
    others: list[Run | None] = []

    def take_over() -> None:
        clock.advance(61)
        assert recover().requeued == 1
        others.append(claim("default", str(run.uuid)))

    with meanwhile("after", take_over):
        assert claim("default", str(run.uuid)) is None
    (other,) = others
    assert other is not None
    run.refresh_from_db()
    assert (other.lease_token, run.status) == (run.lease_token, Status.RUNNING)


def test_a_run_that_was_cancelled_just_after_the_claim_is_not_driven(spec: SpecFile, people: People) -> None:
    run = begin(spec)
    with meanwhile("after", lambda: cancel_run(run, actor=acting(people.operator), reason="not needed")):
        assert claim("default", str(run.uuid)) is None
    run.refresh_from_db()
    assert run.status == Status.CANCELLED


def test_a_claim_that_was_overtaken_before_it_wrote_leaves_the_run_as_it_is(spec: SpecFile, clock: Clock) -> None:
    run = begin(spec)

    def overtake() -> None:
        assert claim("default", str(run.uuid)) is not None
        clock.advance(61)
        assert recover().requeued == 1

    with meanwhile("before", overtake):
        assert claim("default", str(run.uuid)) is None
    run.refresh_from_db()
    assert run.status == Status.QUEUED, "whoever comes next can have it"
    assert claim("default", str(run.uuid)) is not None


HTTP_TOOL = http.HttpTool


class Breaking:
    """A tool adapter with a fault in it: the request leaves, and reading the answer raises what nobody foresaw."""

    def call(self, call: HttpCall, *, deadline_check: Callable[[], None]) -> ToolOutput | ToolFailed:
        HTTP_TOOL().call(call, deadline_check=deadline_check)
        raise RuntimeError(f"cannot read an answer for {os.environ['PAY_TOKEN']}")


def test_an_unforeseen_error_in_an_adapter_interrupts_the_run_with_the_step_named(
    spec: SpecFile,
    tools: FakeTools,
    people: People,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run, key = to_pause(spec)
    successor = decide(key, approved=True, actor=acting(people.approver)).run
    with monkeypatch.context() as patch:
        patch.setattr("workflows.recording.http.HttpTool", Breaking)
        advance("default", str(successor.uuid))
    successor.refresh_from_db()
    assert successor.status == Status.INTERRUPTED
    assert "step pay" in successor.error
    assert "RuntimeError" in successor.error
    assert "RuntimeError: cannot read an answer for [REDACTED]" in caplog.text, "the log says more, and no secret"
    assert "tok-canary" not in successor.error + caplog.text
    state: dict[str, Any] = run_state(run)
    assert (state["status"], state["trace"][-1]["step"]) == ("interrupted", "pay")
    assert Attempt.objects.get(run=successor).ended_at is None, "its effect is of unknown fate"
    assert work() == 0
    retry_run(successor, actor=acting(people.operator), reason="paid: no. The adapter is mended")
    work()
    assert newest(run).status == Status.COMPLETED
    assert sum(request.url.endswith("/pay") for request in tools.requests) == 2
