"""An edit that somebody proposes: votes are void, somebody else decides, and it can be taken back (spec 1.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.editing import edit_request
from approvals.errors import ActionChanged, ApprovalNotFound
from approvals.models import ApprovalRequest, AuditEntry, Edit, Vote
from approvals.policy import may_decide
from approvals.queue import detail
from approvals.services import decide
from tests.approvals.editables import a_payment
from tests.conftest import People, allow
from tests.fakes_tools import FakeTools
from tests.workbench import acting, key_of, to_pause, work
from workflows.engine import jsontext
from workflows.errors import Invalid, NotAllowed, SpecChanged
from workflows.models import Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

FOUR = "approvers: {four_eyes: true}"
TWO = "approvers: {quorum: 2}"
LESS: dict[str, Any] = {"action.body.json.amount": 100}


def the_request(key: str) -> ApprovalRequest:
    return ApprovalRequest.objects.get(key=key)


def paid(tools: FakeTools) -> list[Any]:
    return [request.json()["amount"] for request in tools.requests if "/pay" in request.url]


def test_under_four_eyes_one_proposes_and_another_approves(
    tmp_path: Path, tools: FakeTools, asha: User, ben: User
) -> None:
    run, key = to_pause(a_payment(tmp_path, tools.url, FOUR))
    shown = the_request(key).digest
    with pytest.raises(Invalid, match="proposed by one and approved by another"):
        decide(key, approved=True, actor=acting(asha), edits=LESS)
    edited = edit_request(key, edits=LESS, actor=acting(asha), reason="too much", digest=shown)
    assert edited.digest != shown
    told = detail(key, acting(ben))
    assert told["digest"] == edited.digest
    assert told["action"]["body"]["json"]["amount"] == 100
    assert told["edits"]["changes"] == [{"path": "action.body.json.amount", "before": 120, "after": 100}]
    assert [(one["by"], one["reason"]) for one in told["edits"]["by"]] == [("asha", "too much")]
    assert told["edits"]["original"]["digest"] == shown
    with pytest.raises(NotAllowed, match="whoever proposed the edit"):
        decide(key, approved=True, actor=acting(asha))
    with pytest.raises(ActionChanged):
        decide(key, approved=True, actor=acting(ben), digest=shown)
    decide(key, approved=True, actor=acting(ben), digest=edited.digest)
    work()
    assert newest(run).status == Status.COMPLETED
    assert paid(tools) == [100]
    acts = [(entry.act, entry.actor, entry.digest) for entry in AuditEntry.objects.order_by("id")]
    assert acts == [("edit", "asha", edited.digest), ("decide", "ben", edited.digest)]
    facts = jsontext.loads(AuditEntry.objects.get(act="edit").details)
    assert facts == {"edits": {"action.body.json.amount": {"before": 120, "after": 100}}}


def test_without_four_eyes_a_proposal_may_be_approved_by_its_author(
    tmp_path: Path, tools: FakeTools, asha: User
) -> None:
    run, key = to_pause(a_payment(tmp_path, tools.url))
    edit_request(key, edits=LESS, actor=acting(asha))
    decide(key, approved=True, actor=acting(asha), edits={"action.body.json.to": "Ben"})
    work()
    assert newest(run).status == Status.COMPLETED
    assert paid(tools) == [100]
    assert set(jsontext.loads(AuditEntry.objects.get(act="decide").details)["edits"]) == {
        "action.body.json.amount",
        "action.body.json.to",
    }


def test_an_edit_voids_the_votes_and_the_old_values_restore_the_digest_but_not_them(
    tmp_path: Path, tools: FakeTools, asha: User, ben: User
) -> None:
    run, key = to_pause(a_payment(tmp_path, tools.url, TWO))
    shown = the_request(key).digest
    decide(key, approved=True, actor=acting(asha))
    edit_request(key, edits=LESS, actor=acting(ben))
    assert not Vote.objects.exists()
    back = edit_request(key, edits={"action.body.json.amount": 120}, actor=acting(ben), reason="no, all of it")
    assert back.digest == shown
    assert (Edit.objects.count(), Vote.objects.count()) == (0, 0)
    assert "edits" not in detail(key, acting(asha))
    last = AuditEntry.objects.filter(act="edit").latest("id")
    assert jsontext.loads(last.details)["edits"] == {"action.body.json.amount": {"before": 100, "after": 120}}
    assert decide(key, approved=True, actor=acting(ben)).votes is not None
    assert decide(key, approved=True, actor=acting(asha)).votes is None
    work()
    assert (newest(run).status, paid(tools)) == (Status.COMPLETED, [120])


def test_where_several_must_approve_an_edit_and_a_vote_are_one_act(
    tmp_path: Path, tools: FakeTools, asha: User, ben: User
) -> None:
    run, key = to_pause(a_payment(tmp_path, tools.url, TWO))
    shown = the_request(key).digest
    decide(key, approved=True, actor=acting(ben))
    outcome = decide(key, approved=True, actor=acting(asha), edits=LESS, digest=shown)
    assert outcome.votes is not None
    assert [vote["by"] for vote in outcome.votes["by"]] == ["asha"]
    assert [entry.act for entry in AuditEntry.objects.order_by("id")] == ["vote", "edit", "vote"]
    assert [one["by"] for one in detail(key, acting(ben))["edits"]["by"]] == ["asha"]
    with pytest.raises(ActionChanged):
        decide(key, approved=True, actor=acting(ben), digest=shown)
    assert decide(key, approved=True, actor=acting(ben)).votes is None
    work()
    assert (newest(run).status, paid(tools)) == (Status.COMPLETED, [100])


def test_a_broken_glass_takes_edits_where_there_are_no_four_eyes(tmp_path: Path, tools: FakeTools, asha: User) -> None:
    run, key = to_pause(a_payment(tmp_path, tools.url, TWO))
    asha = allow(asha, "approvals.break_glass")
    decide(key, approved=True, actor=acting(asha), edits=LESS, reason="it burns", break_glass=True)
    work()
    assert (newest(run).status, paid(tools)) == (Status.COMPLETED, [100])


def test_edits_lie_over_each_other_and_each_proposer_is_kept_from_approving(
    tmp_path: Path, tools: FakeTools, asha: User, ben: User
) -> None:
    _, key = to_pause(a_payment(tmp_path, tools.url, FOUR))
    edit_request(key, edits=LESS, actor=acting(asha))
    edit_request(key, edits={"draft.who": "Chitra"}, actor=acting(ben))
    told = detail(key, acting(ben))
    assert [one["path"] for one in told["edits"]["changes"]] == ["action.body.json.amount", "draft.who"]
    assert told["action"]["body"]["json"] == {"amount": 100, "to": "for Chitra", "rows": [1, "two"]}
    assert told["outputs"]["draft"]["who"] == "Chitra"
    assert not any(may_decide(the_request(key), acting(one), approve=True).allowed for one in (asha, ben))
    assert "nobody but those who proposed the edit" in the_request(key).doubt
    edit_request(key, edits={"draft.who": "Asha", "action.body.json.amount": 120}, actor=acting(ben))
    assert the_request(key).doubt == ""
    assert may_decide(the_request(key), acting(asha), approve=True).allowed


def test_the_starter_may_propose_and_not_approve(tmp_path: Path, tools: FakeTools, asha: User, ben: User) -> None:
    _, key = to_pause(a_payment(tmp_path, tools.url, FOUR), actor=acting(asha))
    edit_request(key, edits=LESS, actor=acting(asha))
    assert may_decide(the_request(key), acting(ben), approve=True).allowed


def test_who_may_not_decide_may_not_propose(tmp_path: Path, tools: FakeTools, asha: User, people: People) -> None:
    _, key = to_pause(a_payment(tmp_path, tools.url, "approvers: {users: [asha]}"))
    unknown = "00000000-0000-4000-8000-000000000000"
    for one in (key, unknown):
        with pytest.raises(NotAllowed, match=r"approvals\.decide"):
            edit_request(one, edits=LESS, actor=acting(people.stranger))
    with pytest.raises(NotAllowed, match="by asha only"):
        edit_request(key, edits=LESS, actor=acting(people.approver))
    with pytest.raises(ApprovalNotFound):
        edit_request(unknown, edits=LESS, actor=acting(people.approver))
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("edits", [{}, {"action.body.json.amount": 120}, None, "x", {"ghost": 1}])
def test_a_proposal_that_changes_nothing_or_is_none_is_refused(
    tmp_path: Path, tools: FakeTools, asha: User, edits: Any
) -> None:
    _, key = to_pause(a_payment(tmp_path, tools.url, FOUR))
    before = the_request(key)
    with pytest.raises(Invalid):
        edit_request(key, edits=edits, actor=acting(asha))
    after = the_request(key)
    assert (after.digest, after.revision) == (before.digest, before.revision)
    assert not AuditEntry.objects.exists()
    assert not Edit.objects.exists()


def test_a_changed_spec_or_a_stale_page_is_refused(tmp_path: Path, tools: FakeTools, asha: User) -> None:
    spec = a_payment(tmp_path, tools.url)
    _, key = to_pause(spec)
    with pytest.raises(ActionChanged):
        edit_request(key, edits=LESS, actor=acting(asha), digest="1:other")
    spec.path.write_text(spec.text.replace("two]", "three]"), encoding="utf-8")
    with pytest.raises(SpecChanged):
        edit_request(key, edits=LESS, actor=acting(asha))
    spec.path.write_text(spec.text, encoding="utf-8")
    edit_request(key, edits=LESS, actor=acting(asha))


def test_a_rejection_and_a_cancelled_run_keep_what_really_was(tmp_path: Path, tools: FakeTools, asha: User) -> None:
    run, key = to_pause(a_payment(tmp_path, tools.url))
    edit_request(key, edits={"draft.who": "Chitra"}, actor=acting(asha))
    decide(key, approved=False, actor=acting(asha))
    rejected = newest(run)
    assert rejected.status == Status.REJECTED
    assert jsontext.loads(rejected.outputs)["outputs"]["draft"]["who"] == "Asha"


def test_a_proposer_stays_one_when_the_request_is_opened_again(
    tmp_path: Path, tools: FakeTools, asha: User, ben: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, key = to_pause(a_payment(tmp_path, tools.url, FOUR))
    edit_request(key, edits=LESS, actor=acting(asha))
    decide(key, approved=True, actor=acting(ben))
    tools.script["POST /v2/pay"] = {"json": {}}
    monkeypatch.setenv("PAY_HOST", f"{tools.url}/v2")
    work()
    again = key_of(newest(run))
    assert not may_decide(the_request(again), acting(asha), approve=True).allowed
    told = detail(again, acting(ben))["edits"]
    assert told["changes"] == [{"path": "action.body.json.amount", "after": 100}]
    back = edit_request(again, edits={"action.body.json.amount": 120}, actor=acting(ben))
    assert "edits" not in detail(again, acting(ben))
    decide(again, approved=True, actor=acting(asha), digest=back.digest)
    work()
    assert (newest(run).status, paid(tools)) == (Status.COMPLETED, [120])
