"""`queue_doctor` and approvals: what waits, what was decided and its proof agree again; nothing is decided twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from approvals import audit
from approvals.errors import ApprovalNotFound
from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, RequestStatus
from approvals.services import decide
from statestore.clock import now
from statestore.models import StateRecord
from tests.approvals.policies import ANSWERS
from tests.conftest import Clock, People
from tests.damaged import change, change_request, found, mended, record, request, status_of
from tests.fakes_tools import FakeTools
from tests.workbench import ASKING, PAYING, PAYING_ANSWERS, acting, key_of, to_pause, work, write_spec
from workflows import beats
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS | PAYING_ANSWERS) as service:
        yield service


@pytest.fixture
def asking(tmp_path: Path) -> SpecFile:
    return write_spec(tmp_path, ASKING)


@pytest.fixture
def paying(tmp_path: Path, tools: FakeTools, monkeypatch: pytest.MonkeyPatch) -> SpecFile:
    """Waits at its second step, after a call."""
    monkeypatch.setenv("PAY_TOKEN", "t")
    return write_spec(tmp_path, PAYING, url=tools.url)


def forget_events(run: Run, keep: int) -> None:
    run.events.filter(number__gt=keep).delete()
    Run.objects.filter(pk=run.pk).update(last_event=keep)


def undone(key: str, run: Run, people: People, **decision: Any) -> dict[str, Any]:
    """Decide it, and put the run back as if only the audit had been written; the record's row as it was."""
    row: dict[str, Any] = record(key).values().get()
    decide(key, actor=acting(people.approver), **decision)
    run.refresh_from_db()
    after = newest(run)
    Run.objects.filter(pk=run.pk).update(status=Status.AWAITING, resumed_as=None, ended_at=None, outputs="")
    after.delete()
    return row


# Runs that wait ------------------------------------------------------------------------------------------------


def test_without_its_record_a_run_that_made_nothing_asks_again(asking: SpecFile, people: People) -> None:
    run, key = to_pause(asking)
    record(key).delete()
    with pytest.raises(ApprovalNotFound):
        decide(key, approved=True, actor=acting(people.approver))
    finding = mended("record_missing", noted=2)
    assert "nobody can decide it" in finding.means
    assert key not in finding.subject
    assert (request(key).status, status_of(run)) == (RequestStatus.CANCELLED, Status.QUEUED)
    work()
    assert (status_of(run), key_of(run) != key) == (Status.AWAITING, True)
    assert found() == []
    decide(key_of(run), approved=True, actor=acting(people.approver))


def test_without_its_record_a_run_that_made_something_says_so_and_begins_anew_if_an_operator_wants_it(
    paying: SpecFile, tools: FakeTools, people: People
) -> None:
    run, key = to_pause(paying)
    record(key).delete()
    mended("record_missing", noted=2)
    assert (status_of(run), run.step_index) == (Status.INTERRUPTED, 0)
    assert "begins at the first step" in run.error
    work()
    assert [one.method for one in tools.requests] == ["GET"], "nothing is called by itself"
    retry_run(run, actor=acting(people.operator), reason="again")
    work()
    assert [one.method for one in tools.requests] == ["GET", "GET"]
    assert newest(run).status == Status.AWAITING


def test_without_request_and_record_the_same_happens(asking: SpecFile) -> None:
    run, key = to_pause(asking)
    record(key).delete()
    request(key).delete()
    mended("waits_for_nothing", noted=1)
    work()
    assert status_of(run) == Status.AWAITING


def test_without_its_request_a_run_asks_again_with_all_that_its_record_holds(
    paying: SpecFile, tools: FakeTools, people: People
) -> None:
    run, key = to_pause(paying)
    request(key).delete()
    mended("request_missing", noted=1)
    work()
    assert [one.method for one in tools.requests] == ["GET"], "what was called is not called again"
    assert status_of(run) == Status.AWAITING
    decide(key_of(run), approved=True, actor=acting(people.approver))
    work()
    assert newest(run).status == Status.COMPLETED, newest(run).error
    assert [one.json() for one in tools.requests if one.url.endswith("/pay")] == [{"amount": 120, "for": "go"}]


def test_a_request_that_was_closed_by_nobody_is_open_again(asking: SpecFile, people: People) -> None:
    _, key = to_pause(asking)
    change_request(key, status=RequestStatus.CANCELLED, closed_at=now())
    mended("request_closed_early", noted=1)
    assert request(key).closed_at is None
    decide(key, approved=True, actor=acting(people.approver))
    assert found() == []


@pytest.mark.parametrize(
    ("approved", "status"), [(False, Status.REJECTED), (True, Status.INTERRUPTED)], ids=["rejected", "approved"]
)
@pytest.mark.parametrize("damage", ["no record", "record", "open"])
def test_what_the_audit_says_was_decided_is_never_asked_again(
    damage: str, approved: bool, status: Status, paying: SpecFile, people: People, tools: FakeTools
) -> None:
    run, key = to_pause(paying)
    row = undone(key, run, people, approved=approved, reason="so it is")
    if damage == "record":
        StateRecord.objects.create(**row)
    if damage == "open":
        change_request(key, status=RequestStatus.OPEN, closed_at=None)
    mended("decided_not_done")
    assert (status_of(run), request(key).status) == (status, RequestStatus.DECIDED)
    assert "so it is" in run.error or "approved by approver" in run.error
    assert bool(run.outputs) is (damage == "record"), "what the record held is the run's again"
    assert not record(key).exists()
    work()
    assert [one.method for one in tools.requests] == ["GET"]


def test_a_decided_run_that_waits_again_beside_its_successor_is_not_decided_again(
    paying: SpecFile, people: People, tools: FakeTools
) -> None:
    run, key = to_pause(paying)
    row = record(key).values().get()
    decide(key, approved=True, actor=acting(people.approver))
    change(run, status=Status.AWAITING, resumed_as=None, ended_at=None)
    change_request(key, status=RequestStatus.OPEN, closed_at=None)
    StateRecord.objects.create(**row)
    mended("left_behind", "request_left_open")
    assert (status_of(run), request(key).status) == (Status.RESUMED, RequestStatus.DECIDED)
    work()
    assert newest(run).status == Status.COMPLETED
    assert [one.url.rpartition("/")[2] for one in tools.requests] == ["invoice", "pay", "receipt"]


def test_a_run_whose_end_stands_in_the_audit_alone_ends_as_it_says(asking: SpecFile, clock: Clock) -> None:

    run, key = to_pause(asking)
    clock.advance(8 * 86_400)
    assert expire_due() == 1
    run.refresh_from_db()
    forget_events(run, 2)
    Run.objects.filter(pk=run.pk).update(status=Status.AWAITING, ended_at=None, error="")
    beats.beat()
    audit.seal()
    mended("decided_not_done")
    assert (status_of(run), request(key).status) == (Status.EXPIRED, RequestStatus.EXPIRED)


def test_of_two_open_requests_the_newest_counts(asking: SpecFile, people: People) -> None:
    run, key = to_pause(asking)
    row, entry = ApprovalRequest.objects.filter(key=key).values().get(), record(key).values().get()
    other = "12345678-1234-4234-8234-123456789012"
    ApprovalRequest.objects.create(**row | {"id": None, "key": other})
    StateRecord.objects.create(**entry | {"id": None, "key": f"approval:{other}"})
    mended("waiting_twice", noted=1)
    assert (request(key).status, key_of(run)) == (RequestStatus.CANCELLED, other)
    decide(other, approved=True, actor=acting(people.approver))


def test_outputs_that_are_stored_twice_stay_in_the_record(paying: SpecFile, people: People) -> None:
    run, key = to_pause(paying)
    Run.objects.filter(pk=run.pk).update(outputs='{"outputs": {"look": 1}, "without_output": [], "order": ["look"]}')
    mended("outputs_twice", noted=0)
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert newest(run).status == Status.COMPLETED, newest(run).error
