"""`mode: record`: a decision that no run waits for, on the same record, claim and audit (spec 1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals import audit
from approvals.errors import ApprovalNotFound
from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry
from approvals.queue import detail, waiting
from approvals.services import decide, decide_run
from statestore.models import StateRecord
from tests.approvals.policies import ANSWERS, a_sign, member
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.surfaces.api.conftest import with_token
from tests.workbench import acting, begin, to_pause, work
from workflows.errors import NotAllowed, NothingPending
from workflows.models import Run, Status
from workflows.reading import run_state

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


def recorded(folder: Path, tools: FakeTools, policy: str = "") -> tuple[Run, str]:
    """A run that went on, and the key that it left."""
    run = begin(a_sign(folder, f"mode: record{policy}", url=tools.url))
    work()
    run.refresh_from_db()
    assert run.status == Status.COMPLETED, run.error
    return run, str(ApprovalRequest.objects.get(run=run).key)


def test_the_run_goes_on_to_its_end_and_keeps_the_key(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, key = recorded(tmp_path, tools)
    state = run_state(run)
    assert state["finalOutput"] == {"sign": {"recorded": True, "key": key}, "last": {"done": True}}
    assert "pendingApproval" not in state
    assert [record["step"] for record in state["trace"]] == ["sign", "last"]
    assert StateRecord.objects.filter(key=f"approval:{key}").count() == 1


def test_it_is_listed_as_what_no_run_waits_for(tmp_path: Path, tools: FakeTools, people: People) -> None:
    _, key = recorded(tmp_path, tools)
    with FakeTools(ANSWERS) as other:
        _, gate = to_pause(a_sign(tmp_path, "mode: gate", url=other.url))
    listed = {item["key"]: item.get("mode") for item in waiting().items}
    assert listed == {key: "record", gate: None}
    assert detail(key, acting(people.approver))["mode"] == "record"
    assert with_token(people.approver).get(f"/approvals/{key}").json()["mode"] == "record"


@pytest.mark.parametrize("approved", [True, False])
def test_deciding_starts_nothing_and_is_proved(
    tmp_path: Path, tools: FakeTools, people: People, approved: bool
) -> None:
    run, key = recorded(tmp_path, tools)
    before = run_state(run)
    outcome = decide(key, approved=approved, reason="seen", actor=acting(people.approver))
    assert outcome.run == run
    assert work() == 0
    assert Run.objects.count() == 1
    assert run_state(run) == before
    entry = AuditEntry.objects.get()
    told = ("decide", "approved" if approved else "rejected", "approver", "seen", "")
    assert (entry.act, entry.outcome, entry.actor, entry.reason, entry.successor) == told
    assert ApprovalRequest.objects.get().status == "decided"
    assert not StateRecord.objects.filter(key__contains=key).exists()
    with pytest.raises(ApprovalNotFound) as again:
        decide(key, approved=not approved, actor=acting(people.approver))
    assert again.value.extra["decision"]["by"] == "approver"
    assert audit.seal() == 1
    assert audit.verify().first_bad is None


def test_over_rest_the_answer_is_the_run_as_it_ended(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, key = recorded(tmp_path, tools)
    answer = with_token(people.approver).post(f"/approvals/{key}/approve", {"approved": True})
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["state"]["status"]) == (str(run.uuid), "completed")


def test_the_runs_own_address_has_nothing_to_decide(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, _ = recorded(tmp_path, tools)
    with pytest.raises(NothingPending):
        decide_run(run, approved=True, actor=acting(people.approver))


def test_expiry_closes_it_and_leaves_the_run_alone(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    run, key = recorded(tmp_path, tools, ", expires_in: 10m, on_expire: fail")
    before = run_state(run)
    clock.advance(601)
    assert (expire_due(), expire_due()) == (1, 0)
    assert run_state(run) == before
    assert ApprovalRequest.objects.get().status == "expired"
    assert AuditEntry.objects.get().outcome == "expired"
    with pytest.raises(ApprovalNotFound) as told:
        decide(key, approved=True, actor=acting(people.approver))
    assert told.value.extra["decision"]["outcome"] == "expired"


def test_the_policy_holds_for_it_as_well(tmp_path: Path, tools: FakeTools, people: People) -> None:
    member("asha", "finance")
    _, key = recorded(tmp_path, tools, ", approvers: {groups: [finance], quorum: 2}")
    with pytest.raises(NotAllowed):
        decide(key, approved=True, actor=acting(people.approver))
    first = decide(key, approved=True, actor=acting(member("bo", "finance")))
    assert first.votes is not None
    second = decide(key, approved=True, actor=acting(member("chitra", "finance")))
    assert (second.votes, second.decision["outcome"]) == (None, "approved")


def test_over_rest_a_first_vote_says_how_many_there_are(tmp_path: Path, tools: FakeTools, people: People) -> None:
    _, key = recorded(tmp_path, tools, ", approvers: {quorum: 2}")
    answer = with_token(people.approver).post(f"/approvals/{key}/approve", {"approved": True})
    assert answer.status_code == 200
    votes = answer.json()["votes"]
    assert (votes["needed"], votes["given"]) == (2, 1)
