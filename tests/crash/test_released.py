"""A wait of more than a minute gives the worker back: the run is queued until its time and goes on as if it slept."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django_tasks_db.models import DBTaskResult

from approvals.services import decide
from statestore.clock import now
from tests.conftest import Clock, People
from tests.crash.conftest import Child, dies
from tests.crash.waiting import BUSY, asked, outcomes, told, waiting_spec
from tests.fakes_tools import FakeTools
from tests.workbench import HEAD, acting, begin, key_of, to_pause, work, write_spec
from workflows import messages
from workflows.advance import advance
from workflows.models import Run, Status
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.runs import cancel_run, newest, retry_run
from workflows.tasks import advance_run
from workflows.waiting import awaited

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "place")


def released(spec: SpecFile) -> Run:
    """A run that was given back after its first attempt."""
    run = begin(spec)
    messages.take()
    advance_run.call("default", str(run.uuid))
    run.refresh_from_db()
    return run


def test_it_is_queued_without_a_lease_until_its_time(tmp_path: Path, tools: FakeTools, clock: Clock) -> None:
    run = released(waiting_spec(tmp_path, tools, wait=120, busy=2))
    assert (run.status, run.lease_until, run.lease_owner, run.takeovers) == (Status.QUEUED, None, "", 0)
    due = run.not_before
    assert due is not None
    assert timedelta(seconds=60) < due - now() <= timedelta(seconds=120)
    assert DBTaskResult.objects.count() == 1
    assert messages.take() is None, "its message is for later"
    for _ in range(2):
        clock.advance(55)
        assert recover().resent == 0
        advance("default", str(run.uuid))
        assert asked(tools) == 1
    clock.advance(11)
    assert recover().resent == 1, "the message may be lost: it is sent again when its time has come"
    assert messages.take() == ("default", str(run.uuid))
    assert work() == 1
    run.refresh_from_db()
    assert (run.status, asked(tools)) == (Status.QUEUED, 2), "the second wait is as long"
    clock.advance(121)
    work()
    run.refresh_from_db()
    assert (run.status, run.not_before) == (Status.COMPLETED, None)
    assert outcomes(run) == ["503", "503", "ok", "ok"]
    assert told(run) == ["step_started", "step_completed", "step_started", "step_completed", "completed"]


def test_the_attempts_of_all_its_lives_are_counted_together(tmp_path: Path, tools: FakeTools, clock: Clock) -> None:
    run = released(waiting_spec(tmp_path, tools, wait=120, busy=9))
    for _ in range(2):
        clock.advance(121)
        work()
    run.refresh_from_db()
    assert run.status == Status.FAILED
    assert run.error.endswith("Gave up after 3 attempts.")
    assert asked(tools) == 3
    assert told(run) == ["step_started", "failed"]


def test_an_operator_s_retry_has_all_its_attempts_again(
    tmp_path: Path, tools: FakeTools, clock: Clock, people: People, child: Child
) -> None:
    run = released(waiting_spec(tmp_path, tools, wait=120, busy=9))
    clock.advance(121)
    dies(child("advance", str(run.uuid), faults="run.attempt_open=kill", PLACE="place"))
    clock.advance(61)
    assert recover().interrupted == 1
    assert outcomes(run) == ["503", "open"]
    again = retry_run(run, actor=acting(people.operator), reason="looked it up: repeating does no harm")
    assert again.not_before is None
    for _ in range(3):
        work()
        clock.advance(121)
    again.refresh_from_db()
    assert again.error.endswith("Gave up after 3 attempts.")
    assert (asked(tools), outcomes(again), outcomes(run)) == (4, ["503"] * 3, ["503", "open"])


def test_cancelled_while_it_is_queued_it_calls_nothing_more(
    tmp_path: Path, tools: FakeTools, clock: Clock, people: People
) -> None:
    run = released(waiting_spec(tmp_path, tools, wait=120))
    cancel_run(run, actor=acting(people.operator), reason="not needed")
    clock.advance(121)
    assert recover().resent == 0
    advance("default", str(run.uuid))
    run.refresh_from_db()
    assert (run.status, asked(tools)) == (Status.CANCELLED, 1)
    assert told(run) == ["step_started", "cancelled"]


def approved_and_released(spec: SpecFile, people: People) -> tuple[Run, Run]:
    run, key = to_pause(spec)
    successor = decide(key, approved=True, actor=acting(people.approver)).run
    advance("default", str(successor.uuid))
    successor.refresh_from_db()
    assert successor.status == Status.QUEUED
    return run, successor


def test_what_was_approved_is_approved_still(tmp_path: Path, tools: FakeTools, clock: Clock, people: People) -> None:
    run, successor = approved_and_released(waiting_spec(tmp_path, tools, wait=120, approval=True), people)
    clock.advance(121)
    work()
    assert newest(run).pk == successor.pk, "nobody was asked again"
    successor.refresh_from_db()
    assert (successor.status, asked(tools), outcomes(successor)) == (Status.COMPLETED, 2, ["503", "ok", "ok"])
    assert told(successor) == ["step_started", "step_completed", "step_started", "step_completed", "completed"]


def test_what_would_be_called_now_is_compared_again_with_what_was_approved(
    tmp_path: Path, tools: FakeTools, clock: Clock, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, successor = approved_and_released(waiting_spec(tmp_path, tools, wait=120, approval=True), people)
    monkeypatch.setenv("PLACE", "elsewhere")
    clock.advance(121)
    work()
    successor.refresh_from_db()
    assert successor.status == Status.AWAITING, "another address is another call: somebody is asked"
    assert asked(tools) == 1
    assert told(successor) == ["step_started", "awaiting_approval"]


def test_what_is_approved_after_it_was_asked_again_has_all_its_attempts(
    tmp_path: Path, tools: FakeTools, clock: Clock, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, before = approved_and_released(waiting_spec(tmp_path, tools, wait=120, approval=True), people)
    tools.script["PUT /elsewhere"] = BUSY
    monkeypatch.setenv("PLACE", "elsewhere")
    clock.advance(121)
    work()
    decide(key_of(newest(run)), approved=True, actor=acting(people.approver))
    for _ in range(3):
        work()
        clock.advance(121)
    assert newest(run).error.endswith("Gave up after 3 attempts.")
    assert (outcomes(before), outcomes(newest(run))) == (["503"], ["503"] * 3)


EITHER = (
    HEAD
    + """\
  tools:
    - {{name: one, action: http_request, method: GET, url: "{url}/one", retry: {retry}}}
    - {{name: other, action: http_request, method: GET, url: "{url}/other", retry: {retry}}}
  workflow:
    - {{step: ask, type: condition, if: "vars.which = 'one'", then: execute_tool(one), else: execute_tool(other)}}
vars:
  which: {{type: string, default: "${{WHICH}}"}}
"""
)


def test_a_condition_that_is_decided_otherwise_after_a_wait_counts_the_other_tool_s_attempts(
    tmp_path: Path, tools: FakeTools, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.script = {"GET /one": BUSY, "GET /other": BUSY}
    monkeypatch.setenv("WHICH", "one")
    run = released(write_spec(tmp_path, EITHER, url=tools.url, retry="{max: 1, base_ms: 120000, max_delay_ms: 120000}"))
    assert awaited(run).endswith(", before attempt 2")
    monkeypatch.setenv("WHICH", "other")
    clock.advance(121)
    work()
    run.refresh_from_db()
    assert awaited(run).endswith(", before attempt 2"), "one attempt of the other tool was made"
    clock.advance(121)
    work()
    run.refresh_from_db()
    assert run.error.endswith("Gave up after 2 attempts.")
    assert [request.url.rpartition("/")[2] for request in tools.requests] == ["one", "other", "other"]
