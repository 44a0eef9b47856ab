"""A request goes on under its changed spec: by its step's name, by somebody who did not start the run (scenario 16)."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from approvals import audit
from approvals.errors import ActionChanged
from approvals.models import AuditEntry, Edit, Vote
from approvals.queue import detail
from approvals.rebinding import rebind
from approvals.recall import withdraw
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.editables import a_payment
from tests.approvals.rebinding import DRAFT, INSERTED, PAY, calls, rewrite, the_request
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause, work
from workflows.engine import jsontext
from workflows.errors import NotAllowed, NotPossible, SpecChanged
from workflows.models import SpecVersion, Status
from workflows.reading import run_state
from workflows.registry import SpecFile
from workflows.runs import cancel_run, newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_change_is_refused_until_it_is_bound_or_restored(
    spec: SpecFile, tools: FakeTools, asha: User, olga: User
) -> None:
    run, key = to_pause(spec)
    for old, new in (
        ("    - {step: pay,", INSERTED),
        ("{step: pay, type", "{step: transfer, type"),
        (PAY, ""),
    ):
        rewrite(spec, (old, new))
        with pytest.raises(SpecChanged):
            decide(key, approved=True, actor=acting(asha))
    for gone in (("{step: pay, type", "{step: transfer, type"), (PAY, "")):
        rewrite(spec, gone)
        with pytest.raises(NotPossible, match='no step "pay" any more; restore the file, or reject'):
            rebind(key, actor=acting(olga), reason="new version")
    assert not AuditEntry.objects.exists()
    spec.path.write_text(spec.text, encoding="utf-8")
    decide(key, approved=True, actor=acting(asha))
    work()
    assert newest(run).status == Status.COMPLETED


def test_a_step_inserted_before_does_not_move_the_run_to_another_step(
    spec: SpecFile, tools: FakeTools, asha: User, olga: User
) -> None:
    run, key = to_pause(spec)
    before = the_request(key)
    rewrite(spec, ("    - {step: pay,", INSERTED))
    bound = rebind(key, actor=acting(olga), reason="the extra look is for new runs", digest=before.digest)
    assert (bound.step, bound.step_index, bound.digest) == ("pay", 2, before.digest)
    assert bound.expires_at == before.expires_at
    run.refresh_from_db()
    assert (run.status, run.step_index, run.rebinds) == (Status.AWAITING, 2, 1)
    assert run.spec_hash == bound.spec_hash != before.spec_hash
    assert SpecVersion.objects.filter(hash=bound.spec_hash).exists()
    decide(key, approved=True, actor=acting(asha), digest=bound.digest)
    work()
    last = newest(run)
    assert (last.status, last.spec_hash) == (Status.COMPLETED, bound.spec_hash)
    assert calls(tools) == ["/draft", "/pay?team=blue", "/receipt"]
    (entry,) = AuditEntry.objects.filter(act="rebind")
    assert (entry.actor, entry.reason, entry.spec_hash) == ("olga", "the extra look is for new runs", bound.spec_hash)
    facts = jsontext.loads(entry.details)
    assert facts["policy_before"] == jsontext.loads(before.policy)
    assert (facts["from"], facts["to"], facts["place"]) == (before.spec_hash, bound.spec_hash, "before")
    audit.seal()
    assert audit.verify().first_bad is None


def test_calls_after_a_rebind_never_repeat_the_key_of_another_step(
    spec: SpecFile, tools: FakeTools, asha: User, olga: User
) -> None:
    """A step taken out ahead gives the waiting one the position of one that ran: its receiver must not mix them up."""
    run, key = to_pause(spec)
    rewrite(
        spec,
        (DRAFT, ""),
        ('"{{ draft.amount }}"', "5"),
        ("for {{ draft.who }}", "Asha"),
        ("{{ draft.who }}", "x"),
        (', "draft.who", "draft.lines[1]"', ""),
        (", draft.ghost", ""),
    )
    bound = rebind(key, actor=acting(olga), reason="shorter")
    assert bound.step_index == 0
    decide(key, approved=True, actor=acting(asha))
    work()
    assert newest(run).status == Status.COMPLETED
    keys = [request.header("Idempotency-Key") for request in tools.requests if request.method == "POST"]
    assert keys == [f"{run.uuid}-r1-0", f"{run.uuid}-r1-1"]


def test_the_new_action_is_shown_beside_the_old_one_and_is_what_is_approved(
    spec: SpecFile, tools: FakeTools, asha: User, ben: User, olga: User
) -> None:
    run, key = to_pause(spec)
    before = the_request(key)
    rewrite(spec, ("[1, two]", "[1, three]"), ("approval: {", "approval: {approvers: {users: [asha]}, "))
    bound = rebind(key, actor=acting(olga), reason="three it is")
    assert bound.digest != before.digest
    with pytest.raises(ActionChanged):
        decide(key, approved=True, actor=acting(asha), digest=before.digest)
    with pytest.raises(NotAllowed, match="by asha only"):
        decide(key, approved=True, actor=acting(ben))
    told = detail(key, acting(asha))
    assert told["action"]["body"]["json"]["rows"] == [1, "three"]
    assert told["reopenedFrom"]["action"]["body"]["json"]["rows"] == [1, "two"]
    assert told["reopenedFrom"]["rebound"]["by"] == "olga"
    assert "drift" not in told
    assert [(one.kind, one.name) for one in bound.audience.order_by("id")] == [("user", "asha")]
    decide(key, approved=True, actor=acting(asha), digest=bound.digest)
    work()
    assert newest(run).status == Status.COMPLETED
    assert [request.json()["rows"] for request in tools.requests if "/pay" in request.url] == [[1, "three"]]


def test_votes_and_edits_are_void(tmp_path: Path, tools: FakeTools, asha: User, olga: User) -> None:
    spec = a_payment(tmp_path, tools.url, "approvers: {quorum: 2}")
    _, key = to_pause(spec)
    decide(key, approved=True, actor=acting(asha), edits={"action.body.json.amount": 1})
    rewrite(spec, ("[1, two]", "[1, three]"))
    rebind(key, actor=acting(olga), reason="three it is")
    assert (Vote.objects.count(), Edit.objects.count()) == (0, 0)
    told = detail(key, acting(asha))
    assert (told["votes"], told["action"]["body"]["json"]["amount"]) == ([], 120)
    assert "edits" not in told
    assert decide(key, approved=True, actor=acting(asha)).votes is not None


def test_it_can_be_bound_back_and_the_outputs_are_still_there(
    spec: SpecFile, tools: FakeTools, asha: User, olga: User
) -> None:
    run, key = to_pause(spec)
    first = the_request(key)
    moved = spec.text.replace(DRAFT, "").replace(PAY, PAY + DRAFT)
    moved = moved.replace('"{{ draft.amount }}"', "5").replace("for {{ draft.who }}", "Asha")
    spec.path.write_text(moved.replace("EDITABLE", ""), encoding="utf-8")
    there = rebind(key, actor=acting(olga), reason="there")
    assert there.step_index == 0
    assert detail(key, acting(asha))["outputs"] == {}
    spec.path.write_text(spec.text, encoding="utf-8")
    with pytest.raises(SpecChanged):
        decide(key, approved=True, actor=acting(asha))
    back = rebind(key, actor=acting(olga), reason="and back")
    assert (back.digest, back.step_index, back.spec_hash) == (first.digest, 1, first.spec_hash)
    decide(key, approved=True, actor=acting(asha))
    work()
    assert newest(run).status == Status.COMPLETED
    assert calls(tools) == ["/draft", "/pay?team=blue", "/receipt"]


def test_a_run_that_failed_after_a_rebind_can_be_retried(
    spec: SpecFile, tools: FakeTools, asha: User, olga: User
) -> None:
    run, key = to_pause(spec)
    rewrite(spec, ("    - {step: pay,", INSERTED))
    rebind(key, actor=acting(olga), reason="new version")
    tools.script["POST /pay"] = [{"status": 400, "text": "no"}, {"json": {"id": "p-2"}}]
    decide(key, approved=True, actor=acting(asha))
    work()
    failed = newest(run)
    assert (failed.status, failed.step, failed.step_index) == (Status.FAILED, "pay", 2)
    retry_run(failed, actor=acting(asha), reason="once more")
    work()
    assert newest(run).status == Status.COMPLETED
    assert run_state(newest(run))["finalOutput"]["draft"]["amount"] == 120


def test_a_rebound_request_can_be_rejected_or_cancelled(
    spec: SpecFile, tools: FakeTools, asha: User, olga: User
) -> None:
    for end in ("reject", "cancel"):
        spec.path.write_text(spec.text, encoding="utf-8")
        run, key = to_pause(spec)
        rewrite(spec, ("    - {step: pay,", INSERTED))
        rebind(key, actor=acting(olga), reason="new version")
        if end == "reject":
            decide(key, approved=False, actor=acting(asha))
            assert newest(run).status == Status.REJECTED
        else:
            cancel_run(run, actor=acting(olga))
            assert newest(run).status == Status.CANCELLED
        assert run_state(newest(run))["trace"]
    assert not StateRecord.objects.exists()


def test_an_approval_under_the_changed_spec_can_be_withdrawn_and_bound_back(
    tmp_path: Path, tools: FakeTools, asha: User, olga: User
) -> None:
    spec = a_payment(tmp_path, tools.url, "recall: 10m")
    run, key = to_pause(spec)
    first = the_request(key)
    rewrite(spec, ("    - {step: pay,", INSERTED), ("[1, two]", "[1, three]"))
    bound = rebind(key, actor=acting(olga), reason="new version")
    decide(key, approved=True, actor=acting(asha))
    again = withdraw(key, actor=acting(asha), reason="look again")
    assert (again.digest, again.spec_hash, again.step_index) == (bound.digest, bound.spec_hash, 2)
    spec.path.write_text(spec.text, encoding="utf-8")
    back = rebind(str(again.key), actor=acting(olga), reason="and back")
    assert (back.digest, back.spec_hash, back.step_index) == (first.digest, first.spec_hash, 1)
    assert newest(run).rebinds == 2
