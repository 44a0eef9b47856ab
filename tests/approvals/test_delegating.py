"""Handing one request on: one step, by who may approve, never round four eyes; giver and taker are one person."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from approvals import audit
from approvals.delegating import candidates, delegate
from approvals.errors import ApprovalNotFound
from approvals.models import ApprovalRequest, AuditEntry, Delegation, Edit, Notice
from approvals.policy import Person
from approvals.queue import detail
from approvals.services import decide
from statestore.clock import now
from tests.approvals.policies import a_sign, member
from tests.conftest import People, allow
from tests.surfaces.api.conftest import with_token
from tests.surfaces.cli.running import command
from tests.workbench import acting, to_pause
from workflows.errors import Invalid, NotAllowed
from workflows.models import Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asha(db: None) -> User:
    return member("asha", "finance")


@pytest.fixture
def dev(db: None) -> User:
    """Holds the permission and is in no group."""
    return member("dev")


def may_hand(folder: Path, more: str = "") -> SpecFile:
    return a_sign(folder, f"approvers: {{groups: [finance], delegate: true{more}}}")


def test_who_takes_it_decides_in_the_givers_place(tmp_path: Path, asha: User, dev: User) -> None:
    run, key = to_pause(may_hand(tmp_path))
    with pytest.raises(NotAllowed):
        decide(key, approved=True, actor=acting(dev))
    handed = delegate(key, to="dev", actor=acting(asha), reason="I am at the dentist")
    assert (str(handed.key), Delegation.objects.get().to_user_id) == (key, dev.pk)
    assert [json.loads(note.address) for note in Notice.objects.filter(about="handed")] == [{"user": dev.pk}]
    assert detail(key, acting(dev))["may"]["rule"] == "was handed this by asha"
    decide(key, approved=True, actor=acting(dev))
    assert newest(run).status == Status.QUEUED
    first, last = AuditEntry.objects.order_by("id")
    assert (first.act, first.actor, first.reason) == ("delegate", "asha", "I am at the dentist")
    assert json.loads(first.details) == {"from": "asha", "to": "dev", "to_user_id": dev.pk}
    assert json.loads(first.policy)["rule"] == "is in the group finance"
    assert json.loads(last.policy)["rule"] == "was handed this by asha"
    assert audit.verify().first_bad is None


def test_the_giver_may_still_decide_and_it_may_be_handed_to_several(tmp_path: Path, asha: User, dev: User) -> None:
    for decider in (asha, dev, member("eva")):
        _, key = to_pause(may_hand(tmp_path))
        delegate(key, to="dev", actor=acting(asha))
        if User.objects.filter(username="eva").exists():
            delegate(key, to="eva", actor=acting(asha))
        decide(key, approved=False, actor=acting(decider))
        assert ApprovalRequest.objects.get(key=key).status == "decided"


def test_only_where_the_policy_lets_it(tmp_path: Path, asha: User, dev: User) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {groups: [finance]}"))
    with pytest.raises(NotAllowed, match="cannot be handed on by its policy"):
        delegate(key, to="dev", actor=acting(asha))
    request = ApprovalRequest.objects.get(key=key)
    assert candidates(request, acting(asha)) == []
    assert not AuditEntry.objects.exists()


def test_one_step_only(tmp_path: Path, asha: User, dev: User) -> None:
    eva = member("eva")
    _, key = to_pause(may_hand(tmp_path))
    delegate(key, to="dev", actor=acting(asha))
    with pytest.raises(NotAllowed, match="goes no further"):
        delegate(key, to="eva", actor=acting(dev))
    request = ApprovalRequest.objects.get(key=key)
    assert candidates(request, acting(dev)) == []
    # Not with a row that some other way got there, either.
    Delegation.objects.create(
        request=request, from_user_id=dev.pk, from_label="dev", to_user_id=eva.pk, to_label="eva", at=now()
    )
    with pytest.raises(NotAllowed):
        decide(key, approved=True, actor=acting(eva))


def test_to_whom(tmp_path: Path, asha: User, dev: User) -> None:
    bo = member("bo", "finance")
    member("gone")
    User.objects.filter(username="gone").update(is_active=False)
    User.objects.create(username="visitor")
    _, key = to_pause(may_hand(tmp_path))
    for to, why in (
        ("nobody-here", "no active user"),
        ("gone", "no active user"),
        ("visitor", "does not hold approvals.decide"),
        ("asha", "in your hands already"),
        ("bo", "may decide it already"),
        ("de\x00v", "to: "),
    ):
        with pytest.raises(Invalid, match=why) as refused:
            delegate(key, to=to, actor=acting(asha))
        assert refused.value.extra["errors"][0]["path"] == "to"
    request = ApprovalRequest.objects.get(key=key)
    assert candidates(request, acting(asha)) == [dev]
    assert (request.revision, Delegation.objects.count(), AuditEntry.objects.count()) == (0, 0, 0)
    delegate(key, to="dev", actor=acting(asha))
    with pytest.raises(Invalid, match="may decide it already"):
        delegate(key, to="dev", actor=acting(bo))
    assert candidates(request, acting(asha)) == []


def test_by_whom(tmp_path: Path, asha: User, dev: User) -> None:
    _, key = to_pause(may_hand(tmp_path))
    with pytest.raises(NotAllowed, match="members of finance only"):
        delegate(key, to="asha", actor=acting(dev))
    with pytest.raises(NotAllowed, match=r"approvals\.decide is needed"):
        delegate("no key at all", to="dev", actor=acting(User.objects.create(username="visitor")))
    with pytest.raises(ApprovalNotFound):
        delegate("no key at all", to="dev", actor=acting(asha))


def test_under_four_eyes_nobody_gets_round_by_a_friend(tmp_path: Path, asha: User, dev: User) -> None:
    root = member("root", "finance", superuser=True)
    spec = may_hand(tmp_path, ", four_eyes: true")
    run, key = to_pause(spec, actor=acting(root))
    request = ApprovalRequest.objects.get(key=key)
    with pytest.raises(NotAllowed, match="whoever started the run"):
        delegate(key, to="dev", actor=acting(root))
    # Not even with the row in place: the friend stands in for the starter.
    row = {"request": request, "from_label": "root", "to_user_id": dev.pk, "to_label": "dev", "at": now()}
    Delegation.objects.create(from_user_id=root.pk, **row)
    with pytest.raises(NotAllowed, match="you stand in for whoever started the run"):
        decide(key, approved=True, actor=acting(dev))
    assert Person(acting(dev)).may(request, approve=False).allowed
    # Who stands in for somebody else as well is not kept from it by the starter's name coming first.
    Delegation.objects.create(from_user_id=asha.pk, **row)
    decide(key, approved=True, actor=acting(dev))
    assert newest(run).status == Status.QUEUED


def test_under_four_eyes_neither_starter_nor_proposer_takes_it(tmp_path: Path, asha: User, dev: User) -> None:
    eva, fay = member("eva"), member("fay")
    _, key = to_pause(may_hand(tmp_path, ", four_eyes: true"), actor=acting(dev))
    request = ApprovalRequest.objects.get(key=key)
    Edit.objects.create(
        request=request, user_id=eva.pk, label="eva", edits="{}", digest=request.digest, surface="api", at=now()
    )
    with pytest.raises(Invalid, match="not to whoever started the run"):
        delegate(key, to="dev", actor=acting(asha))
    with pytest.raises(Invalid, match="not to whoever proposed the edit"):
        delegate(key, to="eva", actor=acting(asha))
    assert candidates(request, acting(asha)) == [fay]


def test_both_count_as_one_person(tmp_path: Path, asha: User, dev: User) -> None:
    bo = member("bo", "finance")
    spec = may_hand(tmp_path, ", quorum: 2")
    for first, second in ((asha, dev), (dev, asha)):
        run, key = to_pause(spec)
        delegate(key, to="dev", actor=acting(asha))
        assert decide(key, approved=True, actor=acting(first)).votes is not None
        with pytest.raises(NotAllowed, match="you count as one person"):
            decide(key, approved=True, actor=acting(second))
        assert decide(key, approved=True, actor=acting(bo)).votes is None
        assert newest(run).status == Status.QUEUED


def test_a_taker_of_two_counts_for_the_one_who_is_not_there_yet(tmp_path: Path, asha: User, dev: User) -> None:
    bo = member("bo", "finance")
    run, key = to_pause(may_hand(tmp_path, ", quorum: 2"))
    delegate(key, to="dev", actor=acting(asha))
    request = ApprovalRequest.objects.get(key=key)
    Delegation.objects.create(
        request=request, from_user_id=bo.pk, from_label="bo", to_user_id=dev.pk, to_label="dev", at=now()
    )
    decide(key, approved=True, actor=acting(dev))
    assert decide(key, approved=True, actor=acting(asha)).votes is None
    assert newest(run).status == Status.QUEUED
    assert len(json.loads(AuditEntry.objects.get(act="decide").policy)["votes"]) == 2


def test_it_ends_when_the_giver_may_no_longer_decide(tmp_path: Path, asha: User, dev: User) -> None:
    bo = member("bo", "finance")
    leavings: list[Callable[[], object]] = [
        lambda: asha.groups.clear(),
        lambda: asha.user_permissions.clear(),
        lambda: asha.delete(),
    ]
    for leave in leavings:
        _, key = to_pause(may_hand(tmp_path, ", quorum: 2"))
        delegate(key, to="dev", actor=acting(asha))
        decide(key, approved=True, actor=acting(dev))
        leave()
        assert detail(key, acting(dev))["may"]["decide"] is False
        outcome = decide(key, approved=True, actor=acting(bo))
        assert outcome.votes is not None
        assert [vote["by"] for vote in outcome.votes["by"]] == ["bo"]
        User.objects.filter(username="asha").delete()
        asha = member("asha", "finance")


def test_over_rest_and_at_the_command_line(tmp_path: Path, asha: User, dev: User, people: People) -> None:
    caller = with_token(allow(asha, "workflows.view_run"))
    run, key = to_pause(may_hand(tmp_path))
    assert caller.get(f"/approvals/{key}").json()["may"]["delegate"] is True
    for body, path in (({}, "to"), ({"to": "dev", "from": "bo"}, "from"), ({"to": 7}, "to"), ({"to": "x"}, "to")):
        refused = caller.post(f"/approvals/{key}/delegate", body)
        assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, path)
    assert with_token(people.requester).post(f"/approvals/{key}/delegate", {"to": "dev"}).status_code == 403
    done = caller.post(f"/approvals/{key.upper()}/delegate/", {"to": "dev", "reason": "away"})
    assert (done.status_code, done.json()["id"]) == (200, str(run.uuid))
    assert done.json()["state"]["status"] == "awaiting_approval"

    _, key = to_pause(may_hand(tmp_path))
    told = command("approvals", "delegate", key, "--to", "dev", "--as", "asha", "--reason", "away")
    assert (told.code, told.out.strip()) == (0, "dev may decide it now as well, in the place of asha.")
    again = command("approvals", "delegate", key, "--to", "dev", "--as", "asha", "--json")
    assert (again.code, again.object()["code"]) == (2, "invalid")
    assert command("approvals", "delegate", key, "--as", "asha").code == 64
    assert Delegation.objects.count() == 2
