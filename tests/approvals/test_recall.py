"""`recall`: an approval waits, visibly, and can be withdrawn; then the request is open again (spec 1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals import audit
from approvals.errors import ApprovalNotFound
from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry, RequestStatus
from approvals.queue import decision_of, detail, waiting
from approvals.recall import withdraw, withdrawable
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.policies import ANSWERS, a_pay, member
from tests.approvals.recalling import approved, paths, taken_back
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, to_pause, work
from workflows.errors import NotAllowed
from workflows.models import Run, Status
from workflows.reading import own_state, run_json, run_state
from workflows.recovery import recover
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


# The approval waits --------------------------------------------------------------------------------------------


def test_a_granted_approval_waits_and_then_takes_effect(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    run, key = approved(tmp_path, tools, people)
    request = ApprovalRequest.objects.get(key=key)
    assert withdrawable(request)
    assert (work(), recover().resent, paths(tools)) == (0, 0, [])
    clock.advance(599)
    assert (work(), recover().resent, paths(tools)) == (0, 0, [])
    clock.advance(2)
    assert not withdrawable(request)
    work()
    assert (run_state(run)["status"], paths(tools)) == ("completed", ["pay", "last"])


def test_everybody_can_see_until_when(tmp_path: Path, tools: FakeTools, people: People, clock: Clock) -> None:
    run, key = to_pause(a_pay(tmp_path, "recall: 10m", url=tools.url))
    told = decide(key, approved=True, actor=acting(people.approver)).decision
    until = told["recallUntil"]
    answer = run_json(run)
    assert answer["state"]["status"] == "running"
    assert answer["recallUntil"] == until
    assert (decision_of(key) or {})["recallUntil"] == until
    assert f'"recall_until":"{until}"' in AuditEntry.objects.get().details.replace('": "', '":"')
    clock.advance(601)
    assert "recallUntil" not in run_json(run)
    assert "recallUntil" not in (decision_of(key) or {})


def test_a_rejection_and_a_rule_do_not_wait(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, key = to_pause(a_pay(tmp_path, "recall: 10m, on_reject: continue", url=tools.url))
    assert "recallUntil" not in decide(key, approved=False, actor=acting(people.approver)).decision
    work()
    assert run_state(run)["status"] == "completed"
    run = begin(a_pay(tmp_path, "recall: 10m, auto: {approve_if: 'true'}", url=tools.url))
    work()
    assert run_state(run)["status"] == "completed"


# Taking it back ------------------------------------------------------------------------------------------------


def test_a_withdrawn_approval_leaves_the_request_open_under_a_new_key(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    run, key = approved(tmp_path, tools, people)
    before = ApprovalRequest.objects.get(key=key)
    stopped = newest(run)
    clock.advance(60)
    again = taken_back(key, people)
    before.refresh_from_db()
    assert (before.status, again.status) == (RequestStatus.WITHDRAWN, RequestStatus.OPEN)
    assert (str(again.reopened_from), again.key != before.key) == (key, True)
    same = ("step", "step_index", "kind", "phase", "reason", "tool", "policy", "mode", "digest", "spec_hash")
    assert [getattr(again, name) for name in same] == [getattr(before, name) for name in same]
    assert (again.expires_at - before.expires_at).total_seconds() >= 60, "a lifetime of its own"
    assert [item["key"] for item in waiting().items] == [str(again.key)]
    assert work() == 0
    assert paths(tools) == []
    waits = newest(run)
    assert (waits.pk, waits.status, waits.resumed_from) == (again.run_id, Status.AWAITING, run)
    stopped.refresh_from_db()
    assert (stopped.status, newest(stopped)) == (Status.CANCELLED, waits)
    assert stopped.error == "its approval was withdrawn by approver: wrong sum"
    assert own_state(stopped) == {"status": "cancelled", "trace": [], "error": stopped.error}
    assert run_state(stopped)["pendingApproval"]["key"] == str(again.key)


def test_the_new_request_shows_what_the_old_one_did_and_tells_what_happened(
    tmp_path: Path, tools: FakeTools, people: People
) -> None:
    spec = a_pay(tmp_path, "recall: 10m, auto: {check: execute_tool(look)}", url=tools.url)
    _, key = to_pause(spec)
    shown = detail(key, acting(people.approver))
    decide(key, approved=True, actor=acting(people.approver))
    again = detail(str(taken_back(key, people).key), acting(people.approver))
    told = again.pop("reopenedFrom")
    assert told["what_differs"] == "nothing: the approval by approver was withdrawn by approver: wrong sum"
    assert (told["key"], told["digest"]) == (key, shown["digest"])
    same = {"message", "action", "outputs", "digest", "specHash", "policy", "advice", "kind", "reason"}
    assert {name: again[name] for name in same} == {name: shown[name] for name in same}


def test_the_audit_has_it_and_later_clicks_are_told(tmp_path: Path, tools: FakeTools, people: People) -> None:
    _, key = approved(tmp_path, tools, people)
    again = taken_back(key, people)
    entry = AuditEntry.objects.get(act="withdraw")
    assert (entry.outcome, entry.actor, entry.reason, entry.key) == ("withdrawn", "approver", "wrong sum", key)
    assert str(again.key) in entry.details
    assert entry.successor == str(again.run.uuid)
    with pytest.raises(ApprovalNotFound, match="withdrawn by approver"):
        decide(key, approved=True, actor=acting(people.approver))
    assert audit.seal() == 2
    assert audit.verify().first_bad is None


def test_it_can_be_approved_again_and_withdrawn_again(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    run, key = approved(tmp_path, tools, people)
    for _ in range(3):
        key = str(taken_back(key, people).key)
        decide(key, approved=True, actor=acting(people.approver))
    clock.advance(601)
    work()
    assert (run_state(run)["status"], paths(tools)) == ("completed", ["pay", "last"])
    assert [record["step"] for record in run_state(run)["trace"]] == ["sign", "last"]
    assert Run.objects.filter(status=Status.CANCELLED).count() == 3
    assert not StateRecord.objects.filter(key__startswith="approval:").exists()


def test_or_rejected_or_left_to_expire(tmp_path: Path, tools: FakeTools, people: People, clock: Clock) -> None:
    run, key = approved(tmp_path, tools, people, ", expires_in: 1h")
    decide(str(taken_back(key, people).key), approved=False, actor=acting(people.approver))
    assert run_state(run)["status"] == "rejected"
    run, key = approved(tmp_path, tools, people, ", expires_in: 1h")
    taken_back(key, people)
    clock.advance(3601)
    assert expire_due() == 1
    assert (run_state(run)["status"], paths(tools)) == ("expired", [])


def test_votes_are_void_and_one_person_is_enough_to_withdraw(tmp_path: Path, tools: FakeTools, people: People) -> None:
    _, key = to_pause(a_pay(tmp_path, "recall: 10m, approvers: {quorum: 2, groups: [finance]}", url=tools.url))
    asha, bo, chitra = (member(name, "finance") for name in ("asha", "bo", "chitra"))
    for one in (asha, bo):
        decide(key, approved=True, actor=acting(one))
    with pytest.raises(NotAllowed):
        taken_back(key, people)
    again = withdraw(key, actor=acting(chitra), reason="not this one")
    assert detail(str(again.key), acting(asha))["votes"] == []
    assert decide(str(again.key), approved=True, actor=acting(asha)).votes is not None


def test_the_starter_may_withdraw_what_four_eyes_forbid_to_approve(
    tmp_path: Path, tools: FakeTools, people: People
) -> None:
    asha = member("asha")
    spec = a_pay(tmp_path, "recall: 10m, approvers: {four_eyes: true}", url=tools.url)
    _, key = to_pause(spec, actor=acting(asha))
    decide(key, approved=True, actor=acting(people.approver))
    again = withdraw(key, actor=acting(asha), reason="mine was wrong")
    with pytest.raises(NotAllowed, match="four eyes"):
        decide(str(again.key), approved=True, actor=acting(asha))


def test_after_a_retry_the_steps_before_are_still_told(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    """The outputs went to the record again, and from there on."""
    spec = a_pay(tmp_path, "recall: 10m, auto: {check: execute_tool(look)}", url=tools.url)
    run, key = to_pause(spec)
    decide(key, approved=True, actor=acting(people.approver))
    again = taken_back(key, people)
    assert [record["step"] for record in run_state(run)["trace"]] == ["sign.check"]
    decide(str(again.key), approved=True, actor=acting(people.approver))
    clock.advance(601)
    work()
    assert [record["step"] for record in run_state(run)["trace"]] == ["sign.check", "sign", "last"]
    assert paths(tools) == ["look", "pay", "last"]
