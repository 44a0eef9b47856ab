"""What a decision has to bring: a reason, the digest of what was seen; and how long it is waited for (spec 1.2)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from tests.approvals.policies import a_pay, a_sign, member
from tests.conftest import Clock, People
from tests.surfaces.api.conftest import with_token
from tests.workbench import acting, to_pause, work
from workflows.errors import Invalid
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("needed", "to_approve", "to_reject"),
    [("never", False, False), ("reject", False, True), ("always", True, True)],
)
def test_a_reason_where_one_is_required(
    tmp_path: Path, people: People, needed: str, to_approve: bool, to_reject: bool
) -> None:
    spec = a_sign(tmp_path, f"require_reason: {needed}")
    for approved, required in ((True, to_approve), (False, to_reject)):
        run, key = to_pause(spec)
        if required:
            for empty in (None, "", " \n "):
                with pytest.raises(Invalid) as refused:
                    decide(key, approved=approved, reason=empty, actor=acting(people.approver))
                assert [error["path"] for error in refused.value.extra["errors"]] == ["reason"]
            assert newest(run).status == Status.AWAITING
            decide(key, approved=approved, reason="because", actor=acting(people.approver))
        else:
            decide(key, approved=approved, actor=acting(people.approver))
        assert newest(run).status == (Status.QUEUED if approved else Status.REJECTED)


def test_every_vote_needs_its_reason(tmp_path: Path, people: People) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}, require_reason: always"))
    decide(key, approved=True, reason="one", actor=acting(people.approver))
    with pytest.raises(Invalid):
        decide(key, approved=True, actor=acting(member("bo")))
    decide(key, approved=True, reason="two", actor=acting(member("chitra")))
    assert list(AuditEntry.objects.order_by("id").values_list("reason", flat=True)) == ["one", "two"]


def test_a_digest_is_required_over_rest_for_either_answer(tmp_path: Path, people: People) -> None:
    spec = a_sign(tmp_path, "digest: required")
    caller = with_token(people.approver)
    for approved in (True, False):
        run, key = to_pause(spec)
        for path in (f"/approvals/{key}/approve", f"/runs/{run.uuid}/approve"):
            refused = caller.post(path, {"approved": approved})
            assert (refused.status_code, refused.json()["code"]) == (400, "invalid")
            assert [error["path"] for error in refused.json()["errors"]] == ["digest"]
        wrong = caller.post(f"/approvals/{key}/approve", {"approved": approved, "digest": "1:00"})
        assert wrong.json()["code"] == "action_changed"
        assert newest(run).status == Status.AWAITING
        digest = caller.get(f"/approvals/{key}").json()["digest"]
        body = {"approved": approved, "digest": digest}
        assert caller.post(f"/approvals/{key}/approve?wait=0", body).status_code == 200
        assert AuditEntry.objects.get(key=key).digest_sent


def test_a_digest_that_is_required_over_rest_is_not_asked_for_at_a_terminal(tmp_path: Path, people: People) -> None:
    run, key = to_pause(a_sign(tmp_path, "digest: required"))
    decide(key, approved=True, actor=acting(people.approver, "cli"))
    assert newest(run).status == Status.QUEUED
    assert not AuditEntry.objects.get().digest_sent


def lifetime(key: str) -> timedelta:
    request = ApprovalRequest.objects.get(key=key)
    return request.expires_at - request.created_at


def test_a_request_lives_as_long_as_its_policy_says(tmp_path: Path) -> None:
    for written, meant in (("30m", timedelta(minutes=30)), ("2d", timedelta(days=2))):
        _, key = to_pause(a_sign(tmp_path, f"expires_in: {written}"))
        assert abs(lifetime(key) - meant) < timedelta(seconds=30)
    _, key = to_pause(a_sign(tmp_path, "require_reason: never"))
    assert abs(lifetime(key) - timedelta(days=7)) < timedelta(seconds=30)


@pytest.mark.parametrize(
    ("on_expire", "status"),
    [("expire", Status.EXPIRED), ("fail", Status.FAILED), ("reject", Status.REJECTED)],
)
def test_what_expiry_does_is_the_policys_to_say_and_happens_once(
    tmp_path: Path, clock: Clock, people: People, on_expire: str, status: Status
) -> None:
    spec = a_pay(tmp_path, f"expires_in: 10m, on_expire: {on_expire}, on_reject: continue")
    run, key = to_pause(spec)
    clock.advance(599)
    assert expire_due() == 0
    clock.advance(2)
    assert expire_due() == 1
    assert expire_due() == 0
    run.refresh_from_db()
    assert run.status == status
    state = run_state(run)
    assert (state["status"], state["error"]) == (status, "nobody decided in time: the approval expired")
    assert state["trace"][-1]["step"] == "sign"
    assert ApprovalRequest.objects.get(key=key).status == "expired"
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.outcome, entry.surface) == ("expire", "expired", "system")
    assert work() == 0
    assert Run.objects.count() == 1
