"""`queue_doctor` and what is told of runs: their events, their specs, and who goes on from whom."""

from __future__ import annotations

from pathlib import Path

import pytest
from django_tasks_db.models import DBTaskResult

from statestore.clock import DbNow, now
from tests.damaged import attempt, change, found, mended, status_of, the_one
from tests.workbench import ASKING, STARTER, begin, to_pause, write_spec
from workflows import registry
from workflows.models import Run, RunEvent, SpecVersion, Status
from workflows.reading import run_state
from workflows.registry import SpecFile
from workflows.runs import cancel_run, newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asking(tmp_path: Path) -> SpecFile:
    return write_spec(tmp_path, ASKING)


# Events --------------------------------------------------------------------------------------------------------


def test_numbers_that_are_taken_are_counted_again(asking: SpecFile) -> None:
    run, _ = to_pause(asking)
    change(run, last_event=1)
    mended("events_uncounted", noted=0)
    run.refresh_from_db()
    assert run.last_event == 2


def test_events_that_are_gone_are_told_and_nothing_is_invented(asking: SpecFile) -> None:
    run, _ = to_pause(asking)
    run.events.get(number=1).delete()
    assert "1 of its 2 events" in the_one("events_missing").what
    change(run, pruned_at=now())
    assert found() == [], "retention removes the events of what has ended"


def test_an_end_that_is_not_told_is_told_again(asking: SpecFile) -> None:
    run, _ = to_pause(asking)
    cancel_run(run, actor=STARTER, reason="no")
    run.events.get(number=3).delete()
    assert run_state(run)["status"] != "cancelled"
    mended("ending_missing", noted=1)
    assert run_state(run)["status"] == "cancelled"


# Specs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["missing", "unusable"])
def test_a_spec_that_live_runs_need_comes_back_from_the_file_that_says_the_same(asking: SpecFile, damage: str) -> None:
    to_pause(asking)
    if damage == "missing":
        SpecVersion.objects.all().delete()
    else:
        SpecVersion.objects.update(text="version: '1.1'")
    registry.pinned.cache_clear()
    mended(f"spec_{damage}", noted=0)
    assert SpecVersion.objects.get().text == asking.text


def test_a_spec_whose_file_changed_meanwhile_is_for_an_operator(asking: SpecFile) -> None:
    to_pause(asking)
    asking.path.write_text(asking.text.replace("Go on with", "Really go on with"))
    SpecVersion.objects.all().delete()
    registry.pinned.cache_clear()
    assert "put the file back" in the_one("spec_missing").move


# Chains --------------------------------------------------------------------------------------------------------


def retried(asking: SpecFile) -> tuple[Run, Run]:
    """An interrupted run that an operator retried, and its queued successor."""
    run = begin(asking)
    attempt(run, ended_at=now())
    change(run, status=Status.INTERRUPTED, ended_at=now())
    return run, retry_run(run, actor=STARTER, reason="again")


def test_a_link_that_is_gone_is_made_again(asking: SpecFile) -> None:
    run, after = retried(asking)
    assert found() == []
    change(run, resumed_as=None)
    mended("chain_unlinked", noted=0)
    assert newest(run) == after


def test_a_wrong_first_run_is_set_right(asking: SpecFile) -> None:
    other, (_, after) = begin(asking), retried(asking)
    change(after, root=other)
    mended("chain_root", noted=0)
    after.refresh_from_db()
    assert after.root_id == after.resumed_from_id


def test_a_run_that_was_left_for_nothing_says_so_and_can_be_retried_from_its_start(
    asking: SpecFile, tmp_path: Path
) -> None:
    run, after = retried(asking)
    change(run, resumed_as=None, step_index=1, step="second")
    DBTaskResult.objects.all().delete()
    after.delete()
    finding = mended("resumed_no_successor", noted=1)
    assert "for ever" in finding.means
    assert (status_of(run), run.step_index, run.outputs) == (Status.INTERRUPTED, 0, "")
    assert "gone" in run.error


@pytest.mark.parametrize("status", [Status.QUEUED, Status.INTERRUPTED, Status.RUNNING])
def test_a_run_beside_its_successor_goes_on_no_more(asking: SpecFile, status: Status) -> None:
    run, after = retried(asking)
    change(run, status=status, resumed_as=None, lease_until=DbNow(30))
    if status == Status.INTERRUPTED:
        change(run, last_event=1)
        RunEvent.objects.create(run=run, number=1, type=status, payload='{"error": ""}', at=now())
    mended("left_behind", noted=1)
    assert (status_of(run), run.resumed_as) == (Status.RESUMED, after)
    assert status_of(after) == Status.QUEUED


def test_a_run_that_completed_beside_its_successor_is_for_an_operator(asking: SpecFile) -> None:
    run, _ = retried(asking)
    change(run, status=Status.COMPLETED, last_event=1)
    RunEvent.objects.create(run=run, number=1, type="completed", payload="{}", at=now())
    assert "cancel the later one" in the_one("left_behind").move
