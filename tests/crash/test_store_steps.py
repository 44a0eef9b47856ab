"""A worker killed around a step on the store: nothing is taken twice, skipped, or left without its record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from approvals.services import decide
from statestore.models import StateRecord
from tests.conftest import Clock, People
from tests.crash.conftest import Child, dies
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, key_of, to_pause, work
from tests.workflows.storing import (
    ANSWERS,
    CLOSE_STEP,
    LOOK_STEP,
    ONCE_STEP,
    OPEN_STEP,
    POST_STEP,
    a_spec,
    done,
    keys,
    output,
    told,
)
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.recovery import recover
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

#: Where the worker dies, and whether the store has the step's work by then.
POINTS = {"run.before_key": False, "run.key_taken": False, "run.key_kept": True}
FIRST: dict[str, Any] = {"once": {"first": True}, "open": True, "close": True}
STEPS = {"once": ONCE_STEP.replace("first", "once"), "open": OPEN_STEP, "close": CLOSE_STEP}


@pytest.fixture
def service() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as service:
        yield service


def taken_over(run: Run, clock: Clock) -> None:
    clock.advance(61)
    assert recover().requeued == 1
    work()
    run.refresh_from_db()


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_around_the_step(
    point: str, kind: str, tmp_path: Path, service: FakeTools, clock: Clock, child: Child
) -> None:
    if kind == "close":
        before = done(a_spec(tmp_path, OPEN_STEP))
    spec = a_spec(tmp_path, STEPS[kind], POST_STEP, url=service.url)
    run = begin(spec, input="k")
    dies(child("advance", str(run.uuid), faults=f"{point}=kill"))
    assert bool(keys()) == (POINTS[point] != (kind == "close")), "the write and the record, or neither"
    run.refresh_from_db()
    assert (run.step_index, told(run, kind)) == ((1, 1) if POINTS[point] else (0, 0))
    taken_over(run, clock)
    assert run.status == Status.COMPLETED, run.error
    given = output(run, kind)
    if kind == "once":
        assert given == {"first": True}
    elif kind == "open":
        assert (given["opened"], given["incident"]["runId"]) == (True, str(run.uuid))
    else:
        assert (given["closed"], given["incident"]["runId"]) == (True, str(before.uuid))
    assert told(run, kind) == 1
    assert len(service.requests) == 1


@pytest.mark.parametrize("point", ["run.key_kept", "run.before_final"])
def test_a_worker_killed_between_a_repeat_and_the_end(
    point: str, tmp_path: Path, service: FakeTools, clock: Clock, child: Child
) -> None:
    """The repeat is not behind its step before the run has ended: nobody goes on to what the key guards."""
    spec = a_spec(tmp_path, ONCE_STEP, POST_STEP, url=service.url)
    first = done(spec)
    run = begin(spec, input="k")
    dies(child("advance", str(run.uuid), faults=f"{point}=kill"))
    taken_over(run, clock)
    assert run.status == Status.COMPLETED
    assert run_state(run)["finalOutput"] == {"first": {"first": False, "run": str(first.uuid)}}
    assert len(service.requests) == 1


def test_a_sleeper_that_lost_its_run_takes_nothing(
    tmp_path: Path, service: FakeTools, clock: Clock, child: Child
) -> None:
    """It stands before the transaction while another worker takes the run over; the fence stops it inside."""
    run = begin(a_spec(tmp_path, CLOSE_STEP, LOOK_STEP, url=service.url), input="k")
    sleeper = child("advance", str(run.uuid), faults="run.before_key=sleep:3")
    while Run.objects.get(pk=run.pk).status != Status.RUNNING:
        assert sleeper.poll() is None
    taken_over(run, clock)
    assert output(run, "close") == {"closed": False}
    opened = done(a_spec(tmp_path, OPEN_STEP, agent_id="clerk"))
    sleeper.wait()
    assert keys()["incident:k"]["runId"] == str(opened.uuid), "what was opened since is still open"


def test_a_close_behind_an_approval_that_ended_keeps_its_answer(
    tmp_path: Path, people: People, service: FakeTools, clock: Clock, child: Child
) -> None:
    """The worker is lost between the close and the first call, and the next one comes when the approval has ended."""
    ask = "{step: ask, type: approval, valid_for: 1h}"
    spec = a_spec(tmp_path, OPEN_STEP, ask, CLOSE_STEP, POST_STEP, url=service.url)
    run, key = to_pause(spec, input="k")
    successor = decide(key, approved=True, actor=acting(people.approver)).run
    dies(child("advance", str(successor.uuid), faults="run.before_attempt=kill"))
    assert not StateRecord.objects.filter(key="incident:k").exists()
    clock.advance(7200)
    assert recover().requeued == 1
    work()
    waiting = newest(run)
    assert (waiting.status, service.requests) == (Status.AWAITING, []), waiting.error
    decide(key_of(waiting), approved=True, actor=acting(people.approver))
    work()
    closed = output(newest(run), "close")
    assert (closed["closed"], closed["incident"]["runId"]) == (True, str(run.uuid))
    assert len(service.requests) == 1


def test_an_open_incident_survives_a_restart_and_its_approval_can_still_be_answered(
    tmp_path: Path, people: People, clock: Clock, child: Child
) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, OPEN_STEP, "{step: ask, type: approval}", CLOSE_STEP)
    run = begin(spec, input="k")
    dies(child("advance", str(run.uuid), faults="run.paused=kill"))
    clock.advance(3600)
    repeat = begin(spec, input="k")
    work()
    assert output(newest(repeat), "first") == {"first": False, "run": str(run.uuid)}
    decide(key_of(run), approved=True, actor=acting(people.approver))
    work()
    assert output(newest(run), "close")["closed"] is True
