"""What cannot be withdrawn, and says why; nothing is changed then (spec 1.2, `recall`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.errors import ApprovalNotFound
from approvals.expiry import expire_due
from approvals.models import AuditEntry
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.policies import ANSWERS, a_pay
from tests.approvals.recalling import approved, paths, taken_back
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause, work
from workflows.errors import Invalid, NotAllowed, NotPossible
from workflows.models import Run, Status
from workflows.reading import run_json, run_state
from workflows.runs import cancel_run, newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


def test_it_needs_a_reason_and_the_permission(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, key = approved(tmp_path, tools, people)
    with pytest.raises(Invalid):
        taken_back(key, people, reason="  ")
    for person in (people.stranger, people.operator):
        with pytest.raises(NotAllowed):
            taken_back(key, people, actor=acting(person))
    assert newest(run).status == Status.QUEUED
    assert AuditEntry.objects.count() == 1


def test_unknown_keys_are_not_found(people: People) -> None:
    for key in ("3a1ab7f6-0000-4000-8000-000000000000", "nonsense"):
        with pytest.raises(ApprovalNotFound):
            taken_back(key, people)


def refused(key: str, people: People, words: str) -> None:
    before = AuditEntry.objects.count(), Run.objects.count(), StateRecord.objects.count()
    with pytest.raises(NotPossible, match=words):
        taken_back(key, people)
    assert (AuditEntry.objects.count(), Run.objects.count(), StateRecord.objects.count()) == before


def test_what_cannot_be_withdrawn_says_why(tmp_path: Path, tools: FakeTools, people: People, clock: Clock) -> None:
    spec = a_pay(tmp_path, "recall: 10m, expires_in: 1h", url=tools.url)
    _, key = to_pause(spec)
    refused(key, people, "nobody decided this yet")
    decide(key, approved=False, actor=acting(people.approver))
    refused(key, people, "this was rejected by approver")
    _, key = to_pause(spec)
    clock.advance(3601)
    expire_due()
    refused(key, people, "this was expired")
    _, key = to_pause(a_pay(tmp_path, "valid_for: 1h", url=tools.url))
    decide(key, approved=True, actor=acting(people.approver))
    refused(key, people, "took effect at once")


def test_withdrawing_twice_is_refused(tmp_path: Path, tools: FakeTools, people: People) -> None:
    _, key = approved(tmp_path, tools, people)
    taken_back(key, people)
    refused(key, people, "this was withdrawn by approver")


def test_after_the_end_of_the_recall_it_went_on(tmp_path: Path, tools: FakeTools, people: People, clock: Clock) -> None:
    run, key = approved(tmp_path, tools, people)
    clock.advance(601)
    refused(key, people, "went on already")
    work()
    refused(key, people, "went on already")
    assert run_state(run)["status"] == "completed"


def test_a_run_that_waits_for_its_next_attempt_is_not_one_that_waits_for_its_recall(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    """Both are queued with a time; here the row was moved back into its recall by hand."""
    run, key = approved(tmp_path, tools, people)
    Run.objects.filter(pk=newest(run).pk).update(lease_token=1)
    refused(key, people, "went on already")
    assert "recallUntil" not in run_json(run)


def test_a_run_can_be_cancelled_while_its_approval_waits(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    run, key = approved(tmp_path, tools, people)
    cancel_run(newest(run), actor=acting(people.operator), reason="not needed")
    refused(key, people, "cancelled meanwhile")
    clock.advance(601)
    assert (work(), run_state(run)["status"], paths(tools)) == (0, "cancelled", [])


def test_an_operators_retry_waits_for_nobody(tmp_path: Path, people: People, clock: Clock) -> None:
    with FakeTools({**ANSWERS, "POST /pay": [{"status": 500}, {"json": {"paid": True}}]}) as tools:
        run, key = approved(tmp_path, tools, people)
        clock.advance(601)
        work()
        assert newest(run).status == Status.FAILED
        retry_run(newest(run), actor=acting(people.operator), reason="once more")
        work()
        assert run_state(run)["status"] == "completed"
        refused(key, people, "went on already")
