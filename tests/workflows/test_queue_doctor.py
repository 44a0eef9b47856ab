"""`queue_doctor` and runs: each kind of damage is seen, mended without a second call, and then nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from statestore.clock import DbNow, now
from statestore.keys import LOCK
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.conftest import Clock
from tests.damaged import BY, EVERYTHING, attempt, change, found, mend, mended, status_of, the_one
from tests.fakes_tools import FakeTools
from tests.workbench import ASKING, PAYING, PAYING_ANSWERS, begin, to_pause, work, write_spec
from workflows import beats
from workflows.models import Attempt, Run, RunEvent, Status, TriggerState
from workflows.registry import SpecFile
from workflows.repair import queued
from workflows.repair.examination import examine

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(PAYING_ANSWERS) as service:
        yield service


@pytest.fixture
def asking(tmp_path: Path) -> SpecFile:
    return write_spec(tmp_path, ASKING)


def lost(run: Run, clock: Clock, seconds: float = 200) -> Run:
    """Its worker is gone for so long; another one is alive."""
    change(run, status=Status.RUNNING, lease_owner="gone:1", lease_token=1, lease_until=DbNow(-seconds), step="pay")
    beats.beat()
    return run


# Workers and messages ------------------------------------------------------------------------------------------


def test_a_queued_run_without_a_message_gets_one(
    asking: SpecFile, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued, "PAUSE_SECONDS", 0.05)
    run = begin(asking)
    DBTaskResult.objects.all().delete()
    assert found() == [], "it may just have been taken"
    clock.advance(100)
    beats.beat()
    finding = mended("queued_no_message", noted=0)
    assert "1 worker process is alive" in finding.means
    assert DBTaskResult.objects.get().args_kwargs["args"][1] == str(run.uuid)


def test_runs_that_nobody_is_there_to_take_are_for_an_operator(asking: SpecFile, clock: Clock) -> None:
    begin(asking)
    clock.advance(100)
    finding = the_one("no_worker")
    assert "start `serve` or `worker`" in finding.move
    assert finding.since is not None
    beats.beat()
    assert found() == []


def test_a_message_that_leads_to_no_queued_run_is_deleted_once_it_is_old(asking: SpecFile, clock: Clock) -> None:
    to_pause(asking)
    begin(asking)
    assert found() == []
    long_ago = timezone.now() - timedelta(hours=2)
    DBTaskResult.objects.update(enqueued_at=long_ago, run_after=long_ago)
    mended("message_for_nobody", noted=0)
    assert DBTaskResult.objects.count() == 1, "that of the queued one stays"


def test_a_lost_worker_is_told_with_what_recovery_will_do(asking: SpecFile, clock: Clock) -> None:
    run = lost(begin(asking), clock)
    finding = mended("lease_lapsed", noted=1)
    assert "goes back into the queue" in finding.fix
    assert status_of(run) == Status.QUEUED
    assert (run.takeovers, run.lease_token) == (1, 2)


def test_a_lost_worker_with_a_call_under_way_interrupts_and_calls_nothing(
    tmp_path: Path, tools: FakeTools, clock: Clock
) -> None:
    run = lost(begin(write_spec(tmp_path, PAYING, url=tools.url)), clock)
    attempt(run)
    finding = mended("lease_lapsed", noted=1)
    assert "nobody knows whether it took effect" in finding.fix
    assert status_of(run) == Status.INTERRUPTED
    work()
    assert tools.requests == []


def test_a_worker_that_is_a_moment_late_is_no_finding(asking: SpecFile, clock: Clock) -> None:
    lost(begin(asking), clock, seconds=30)
    assert found() == []


def test_a_running_run_without_a_lease_is_taken_up(asking: SpecFile, clock: Clock) -> None:
    run = change(lost(begin(asking), clock), lease_until=None)
    mended("running_no_lease", noted=1)
    assert status_of(run) == Status.QUEUED


def test_a_lease_of_a_clock_that_was_wrong_is_for_an_operator(asking: SpecFile, clock: Clock) -> None:
    lost(begin(asking), clock, seconds=-90_000)
    assert "a clock went wrong" in the_one("lease_too_long").what


# Calls ---------------------------------------------------------------------------------------------------------


def test_a_queued_run_with_an_open_call_is_interrupted_before_it_calls_again(tmp_path: Path, tools: FakeTools) -> None:
    run = begin(write_spec(tmp_path, PAYING, url=tools.url))
    attempt(run)
    mended("attempt_open_queued", noted=1)
    assert status_of(run) == Status.INTERRUPTED
    assert "nobody knows" in run.error
    work()
    assert tools.requests == []


def test_a_call_that_its_run_left_open_is_closed_as_unknown(asking: SpecFile) -> None:
    run, _ = to_pause(asking)
    attempt(run)
    mended("attempt_left_open", noted=1)
    assert Attempt.objects.get().outcome.startswith("unknown")


@pytest.mark.parametrize("status", [Status.CANCELLED, Status.INTERRUPTED])
def test_a_call_of_unknown_fate_is_the_truth_of_runs_that_were_stopped(asking: SpecFile, status: Status) -> None:
    run = begin(asking)
    attempt(run)
    change(run, status=status, ended_at=now(), last_event=1)
    RunEvent.objects.create(run=run, number=1, type=status, payload='{"error": ""}', at=now())
    DBTaskResult.objects.all().delete()
    assert found() == []


# The store -----------------------------------------------------------------------------------------------------


def test_the_lock_of_a_chain_that_ended_is_freed(asking: SpecFile, clock: Clock) -> None:
    run = begin(asking)
    store = StateStore("default", "clerk", kinds=(LOCK,))
    store.put(f"{LOCK}schedule", {"run": str(run.uuid), "due": ""}, ttl=86_400)
    DBTaskResult.objects.all().delete()
    change(run, status=Status.COMPLETED, last_event=1, ended_at=now())
    RunEvent.objects.create(run=run, number=1, type="completed", payload="{}", at=now())
    assert found() == [], "a scheduler is about to free it"
    clock.advance(100)
    mended("lock_left", noted=0)
    assert store.list(LOCK) == ()


SCHEDULE = '{{type: schedule, cron: "0 8 * * *", timezone: UTC}}'
QUEUE = '{{type: schedule, cron: "0 8 * * *", overlap: queue}}'
WEBHOOK = "{{type: webhook}}"


def late_trigger(tmp_path: Path, trigger: str, **columns: Any) -> list[str]:
    """The row of a schedule that has been due for an hour, with these columns; where its file says this."""
    text = ASKING.replace('"1.1"', '"1.2"').replace("workflow:", f"trigger: {trigger}\n  workflow:")
    given = {"kind": "schedule", "definition": "x", "due_at": DbNow(-3600), "created_at": now()}
    TriggerState.objects.create(agent_id="clerk", **given | columns)
    return [str(write_spec(tmp_path, text).path)]


def test_a_trigger_that_nobody_fires_is_for_an_operator(tmp_path: Path, clock: Clock, settings: Any) -> None:
    settings.KAMPONG_SPECS = []
    path = late_trigger(tmp_path, SCHEDULE)
    assert found() == [], "its file is not served"
    settings.KAMPONG_SPECS = path
    finding = the_one("trigger_late")
    assert "was not fired" in finding.what
    assert "`scheduler`" in finding.move


def test_a_trigger_that_the_file_has_no_more_is_not_late(tmp_path: Path, settings: Any) -> None:
    settings.KAMPONG_SPECS = late_trigger(tmp_path, WEBHOOK)
    assert found() == []


@pytest.mark.parametrize(("trigger", "late"), [(QUEUE, False), (SCHEDULE, True)])
def test_only_a_schedule_with_a_queue_waits_for_its_last_run(
    asking: SpecFile, tmp_path: Path, settings: Any, trigger: str, late: bool
) -> None:
    run, _ = to_pause(asking)
    settings.KAMPONG_SPECS = late_trigger(tmp_path, trigger, last_run=run)
    assert [one.code for one in found()] == ["trigger_late"] * late
    TriggerState.objects.update(lock_freed=True)
    assert the_one("trigger_late")


def test_one_whose_run_lost_its_worker_waits_for_its_lock(
    asking: SpecFile, tmp_path: Path, clock: Clock, settings: Any
) -> None:
    run = lost(begin(asking), clock)
    settings.KAMPONG_SPECS = late_trigger(tmp_path, SCHEDULE, last_run=run)
    DBTaskResult.objects.all().delete()
    StateStore("default", "clerk", kinds=(LOCK,)).put(f"{LOCK}schedule", {"run": str(run.uuid), "due": ""}, ttl=900)
    assert the_one("lease_lapsed")
    clock.advance(1000)
    beats.beat()
    assert [one.code for one in found()] == ["lease_lapsed", "trigger_late"]


def test_what_nobody_purges_is_purged(clock: Clock) -> None:
    store = StateStore("default", "clerk")
    for number in range(3):
        store.put(str(number), number, ttl=10)
    clock.advance(100)
    assert found() == []
    clock.advance(4000)
    mend("entries_not_purged")


# Torn rows -----------------------------------------------------------------------------------------------------


def test_a_row_that_cannot_be_read_is_told_and_ends_no_other_check(asking: SpecFile, clock: Clock) -> None:
    _, key = to_pause(asking)
    row = StateRecord.objects.get(key=f"approval:{key}")
    StateRecord.objects.filter(pk=row.pk).update(value='{"card": "4111')
    StateStore("default", "clerk", kinds=(LOCK,)).put(f"{LOCK}schedule", {"run": "4111-" * 7 + "x"}, ttl=86_400)
    StateStore("default", "clerk").put("gone", 1, ttl=10)
    clock.advance(4000)
    examined = examine(EVERYTHING, BY)
    assert [one.code for one in examined.mended] == ["entries_not_purged"]
    assert {one.code for one in examined.left} == {"unreadable"}
    assert {one.subject.partition(",")[0] for one in examined.left} == {
        "the check of locks",
        "the check of requests",
    }
    assert "4111" not in str(examined)
