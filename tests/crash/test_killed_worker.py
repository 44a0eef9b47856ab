"""A worker killed at any point: the run ends once or stands interrupted with its step named; no call is made twice."""

from __future__ import annotations

import pytest
from django_tasks_db.models import DBTaskResult

from approvals.services import decide
from tests.conftest import Clock, People
from tests.crash.conftest import Child, dies
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, key_of, to_pause, work
from workflows.models import Attempt, Run, Status
from workflows.reading import run_state
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

#: Where a worker is killed on its way through an approved payment, and what recovery makes of the run.
POINTS = {
    "run.lease_taken": Status.QUEUED,
    "run.before_attempt": Status.QUEUED,
    "run.attempt_open": Status.INTERRUPTED,
    "run.called": Status.INTERRUPTED,
    "run.before_event": Status.INTERRUPTED,
    "run.event_written": Status.QUEUED,
}


def paid(tools: FakeTools) -> int:
    return sum(request.url.endswith("/pay") for request in tools.requests)


def approved(spec: SpecFile, people: People) -> tuple[Run, Run]:
    """A run that was approved, and its queued successor."""
    run, key = to_pause(spec)
    return run, decide(key, approved=True, reason="pay it", actor=acting(people.approver)).run


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_during_an_approved_payment(
    point: str, spec: SpecFile, tools: FakeTools, people: People, clock: Clock, child: Child
) -> None:
    run, successor = approved(spec, people)
    dies(child("advance", str(successor.uuid), faults=f"{point}=kill"))
    made = paid(tools)
    assert made == (1 if point in ("run.called", "run.before_event", "run.event_written") else 0)
    assert recover().interrupted == 0, "a lease that still runs is left alone"
    clock.advance(61)
    recover()
    successor.refresh_from_db()
    assert successor.status == POINTS[point]
    if successor.status == Status.INTERRUPTED:
        assert "pay" in successor.error
        assert work() == 0, "nothing repeats an effect by itself"
        assert paid(tools) == made
        again = retry_run(successor, actor=acting(people.operator), reason="looked it up: not paid")
        assert again.decision == successor.decision
    work()
    assert run_state(run)["status"] == "completed"
    assert paid(tools) == (made + 1 if POINTS[point] == Status.INTERRUPTED else 1)
    assert newest(run).requests.count() == 0, "nobody was asked again"


@pytest.mark.parametrize("point", ["run.before_final", "run.before_pause", "run.paused", "run.finished"])
def test_a_worker_killed_around_a_pause_or_the_end(
    point: str, spec: SpecFile, tools: FakeTools, people: People, clock: Clock, child: Child
) -> None:
    if "final" in point or "finish" in point:
        run, victim = approved(spec, people)
    else:
        run = victim = begin(spec)
    dies(child("advance", str(victim.uuid), faults=f"{point}=kill"))
    clock.advance(61)
    recover()
    victim.refresh_from_db()
    if point == "run.finished":
        assert victim.status == Status.COMPLETED
    elif point == "run.before_final":
        # The last step's call is made and not yet recorded: nobody can know from here.
        assert victim.status == Status.INTERRUPTED
        assert "receipt" in victim.error
        retry_run(victim, actor=acting(people.operator), reason="safe to repeat")
    elif point == "run.paused":
        assert victim.status == Status.AWAITING
    else:
        assert victim.status == Status.QUEUED, "the look is stored, nothing is under way"
    work()
    if newest(run).status == Status.AWAITING:
        decide(key_of(newest(run)), approved=True, actor=acting(people.approver))
        work()
    assert run_state(run)["status"] == "completed"
    assert paid(tools) == 1


def test_a_run_that_loses_its_worker_three_times_between_steps_is_parked(
    spec: SpecFile, people: People, clock: Clock, child: Child
) -> None:
    run = begin(spec)
    for _ in range(3):
        dies(child("advance", str(run.uuid), faults="run.lease_taken=kill"))
        clock.advance(61)
        recover()
    run.refresh_from_db()
    assert run.status == Status.INTERRUPTED
    assert "three times" in run.error
    assert Attempt.objects.filter(run=run).count() == 0
    retry_run(run, actor=acting(people.operator), reason="the machine was full")
    work()
    assert newest(run).status == Status.AWAITING


def test_a_lost_message_is_sent_again(spec: SpecFile, people: People, clock: Clock) -> None:
    _, successor = approved(spec, people)
    DBTaskResult.objects.all().delete()
    assert recover().resent == 0
    clock.advance(6)
    assert recover().resent == 1
    assert DBTaskResult.objects.count() == 1
    assert recover().resent == 0
    assert successor.status == Status.QUEUED
