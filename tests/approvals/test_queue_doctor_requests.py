"""`queue_doctor` and requests: each agrees with its record, its proof and its run, and the audit with itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from approvals import audit
from approvals.models import ApprovalRequest, AuditEntry, Notice, RequestStatus, Vote
from approvals.recall import withdraw
from approvals.services import decide
from statestore.clock import now
from statestore.keys import RECALL
from statestore.models import StateRecord
from tests.approvals.policies import ANSWERS, a_pay, a_sign
from tests.conftest import Clock, People
from tests.damaged import BY, change, change_request, found, mend, mended, record, request, status_of, the_one
from tests.fakes_tools import FakeTools
from tests.workbench import ASKING, PAYING, PAYING_ANSWERS, STARTER, acting, begin, to_pause, work, write_spec
from workflows import beats
from workflows.models import Run, RunEvent, Status
from workflows.registry import Registry, SpecFile
from workflows.repair.examination import examine
from workflows.repair.findings import Scope
from workflows.runs import cancel_run, newest

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


# Requests ------------------------------------------------------------------------------------------------------


def test_a_request_whose_run_is_over_is_closed(asking: SpecFile) -> None:
    run, key = to_pause(asking)
    row = record(key).values().get()

    cancel_run(run, actor=STARTER, reason="no")
    change_request(key, status=RequestStatus.OPEN, closed_at=None)
    StateRecord.objects.create(**row)
    mended("request_left_open", noted=1)
    assert request(key).status == RequestStatus.CANCELLED
    assert not record(key).exists()


@pytest.mark.parametrize("status", [Status.FAILED, Status.QUEUED])
def test_what_only_the_record_holds_is_not_lost_with_it(paying: SpecFile, status: Status) -> None:
    run, key = to_pause(paying)
    RunEvent.objects.create(run=run, number=5, type="failed", payload='{"error": ""}', at=now())
    change(run, status=status, last_event=5, ended_at=now())
    if status == Status.QUEUED:
        assert "runs cancel" in the_one("request_left_open").move
    else:
        mended("request_left_open", noted=1)
        run.refresh_from_db()
        assert "120" in run.outputs
    assert record(key).exists() is (status == Status.QUEUED)


def test_a_decided_request_that_is_open_is_closed_as_decided(asking: SpecFile, people: People) -> None:
    run, key = to_pause(asking)
    decide(key, approved=False, actor=acting(people.approver))
    change_request(key, status=RequestStatus.OPEN, closed_at=None)
    mended("request_left_open")
    assert request(key).status == RequestStatus.DECIDED
    assert newest(run).status == Status.REJECTED


def test_a_run_that_only_stopped_waiting_waits_again(paying: SpecFile, people: People, tools: FakeTools) -> None:
    run, key = to_pause(paying)
    Run.objects.filter(pk=run.pk).update(status=Status.QUEUED)
    mended("request_left_open", noted=1)
    assert status_of(run) == Status.AWAITING
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert newest(run).status == Status.COMPLETED, newest(run).error


def test_a_recorded_request_without_a_record_is_closed(tmp_path: Path, tools: FakeTools) -> None:
    begin(a_sign(tmp_path, "mode: record", url=tools.url))
    work()
    StateRecord.objects.all().delete()
    mended("recorded_no_record", noted=1)
    assert ApprovalRequest.objects.get().status == RequestStatus.CANCELLED


@pytest.mark.parametrize("column", ["digest", "spec_hash"])
def test_a_request_takes_from_its_record_what_a_decision_compares(
    asking: SpecFile, people: People, column: str
) -> None:
    _, key = to_pause(asking)
    change_request(key, **{column: "1:other"})
    mended("request_differs", noted=1)
    decide(key, approved=True, actor=acting(people.approver))


def test_a_request_says_the_end_that_counts(asking: SpecFile) -> None:
    _, key = to_pause(asking)
    change_request(key, expires_at=now() + timedelta(days=99))
    mended("expiry_differs", noted=0)
    assert request(key).expires_at == record(key).get().expires_at


def test_what_expired_long_ago_ends_as_its_policy_says(asking: SpecFile, clock: Clock) -> None:
    run, _ = to_pause(asking)
    clock.advance(7 * 86_400 + 60)
    beats.beat()
    assert found() == [], "a worker is about to take it"
    clock.advance(1000)
    beats.beat()
    mended("expired_not_taken", noted=0)
    assert status_of(run) == Status.EXPIRED


def test_no_file_is_read_inside_the_transaction_that_ends_what_expired(
    tmp_path: Path, tools: FakeTools, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = "expires_in: 10m, on_expire: execute_tool(tell)"
    run, _ = to_pause(a_sign(tmp_path, policy, url=tools.url))
    clock.advance(2000)
    beats.beat()
    inside: list[bool] = []
    really = Registry.present

    def present(*words: Any) -> Any:
        inside.append(connection.in_atomic_block)
        return really(*words)

    monkeypatch.setattr(Registry, "present", present)
    examine(Scope(), BY)
    assert set(inside) == {False}
    assert newest(run).status == Status.QUEUED


def test_a_record_that_was_left_is_taken_away(asking: SpecFile, people: People) -> None:
    _, key = to_pause(asking)
    row = record(key).values().get()
    decide(key, approved=True, actor=acting(people.approver))
    StateRecord.objects.create(**row)
    mended("record_left", noted=1)
    assert not record(key).exists()


def test_a_record_without_request_and_run_is_deleted(asking: SpecFile, people: People) -> None:
    _, key = to_pause(asking)
    row = record(key).values().get()
    decide(key, approved=False, actor=acting(people.approver))
    StateRecord.objects.create(**row | {"key": "approval:12345678-1234-4234-8234-123456789012"})
    finding = mended("record_orphan", noted=0)
    assert "#" in finding.subject


def test_a_decision_without_proof_is_written_down_as_that(asking: SpecFile, people: People) -> None:
    _, key = to_pause(asking)
    decide(key, approved=True, actor=acting(people.approver))
    AuditEntry.objects.all().delete()
    mended("decided_no_audit", noted=1)
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.outcome, entry.key) == ("repair", "unproved", key)
    assert "approved by approver" in entry.reason


# Recalls, votes, the audit, notices ----------------------------------------------------------------------------


def test_what_is_kept_for_a_recall_goes_with_the_approval(tmp_path: Path, people: People, tools: FakeTools) -> None:
    _, key = to_pause(a_pay(tmp_path, "recall: 10m", url=tools.url))
    decide(key, approved=True, actor=acting(people.approver))
    row = StateRecord.objects.filter(key=f"{RECALL}{key}").values().get()
    assert found() == []
    StateRecord.objects.filter(key=row["key"]).delete()
    finding = the_one("recall_lost")
    assert "runs cancel" in finding.move
    StateRecord.objects.create(**row)
    withdraw(key, actor=acting(people.approver), reason="wrong")
    StateRecord.objects.create(**row)
    mended("recall_orphan", noted=0)


def test_a_vote_on_what_was_over_is_removed_and_named(tmp_path: Path, people: People, tools: FakeTools) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}", url=tools.url))
    decide(key, approved=True, actor=acting(people.approver))
    decide(key, approved=False, actor=acting(people.approver))
    assert found() == [], "the vote before its end is its history"
    Vote.objects.update(at=now() + timedelta(hours=1))
    mended("vote_after_end", noted=1)
    assert "approver" in AuditEntry.objects.get(act="repair").reason


def test_what_nobody_sealed_is_sealed(asking: SpecFile, people: People, clock: Clock) -> None:
    _, key = to_pause(asking)
    decide(key, approved=False, actor=acting(people.approver))
    assert found() == []
    clock.advance(1000)
    mend("audit_unsealed")
    assert audit.verify().sealed == 1


@pytest.mark.parametrize("what", ["reason", "sealed_hash", "gone", "last"])
def test_a_chain_that_does_not_hold_is_for_an_operator(asking: SpecFile, people: People, what: str) -> None:
    for _ in range(3):
        decide(to_pause(asking)[1], approved=False, actor=acting(people.approver))
    audit.seal()
    assert found() == []
    entries = AuditEntry.objects.filter(seal_no=3 if what == "last" else 2)
    if what in ("gone", "last"):
        entries.update(key="", seal_no=None) if what == "gone" else entries.update(sealed_hash="x")
    else:
        entries.update(**{what: "other"})
    codes = [one.code for one in found()]
    assert "audit_broken" in codes


def test_notices_that_nobody_sends_or_that_were_given_up_are_told(asking: SpecFile, clock: Clock) -> None:
    _, key = to_pause(asking)
    notice = Notice.objects.create(
        request=request(key), channel="email", address="{}", about="opened", due_at=now(), created_at=now()
    )
    assert found() == []
    clock.advance(1000)
    assert "no sender has them" in the_one("notices_overdue").what
    Notice.objects.filter(pk=notice.pk).update(status="failed", error="refused: no such box")
    assert "no such box" in the_one("notices_failed").what
    change_request(key, status=RequestStatus.CANCELLED)
    assert "notices_failed" not in [one.code for one in found()], "nobody has to be told any more"
