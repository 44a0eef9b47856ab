"""Several people must approve: distinct, members at that moment, each vote kept with its proof (spec 1.2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals import audit
from approvals.errors import ApprovalNotFound
from approvals.models import ApprovalRequest, AuditEntry, Vote
from approvals.queue import detail, waiting
from approvals.services import decide
from tests.approvals.policies import a_sign, member
from tests.conftest import People
from tests.surfaces.cli.running import command
from tests.workbench import acting, to_pause
from workflows.errors import NotAllowed
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import cancel_run, newest

pytestmark = pytest.mark.django_db(transaction=True)

TWO = "approvers: {groups: [finance], quorum: 2}"


@pytest.fixture
def asha(db: None) -> User:
    return member("asha", "finance")


@pytest.fixture
def bo(db: None) -> User:
    return member("bo", "finance", "others")


@pytest.fixture
def spec(tmp_path: Path, asha: User, bo: User) -> SpecFile:
    return a_sign(tmp_path, TWO)


def approve(key: str, user: User, **more: Any) -> object:
    return decide(key, approved=True, actor=acting(user), **more)


def statuses(run: Run) -> tuple[str, int]:
    """Where the chain stands, and how many runs it has."""
    return newest(run).status, Run.objects.count()


def test_the_first_vote_counts_and_the_second_decides(spec: SpecFile, asha: User, bo: User) -> None:
    run, key = to_pause(spec)
    first = decide(key, approved=True, actor=acting(asha), reason="read it")
    assert first.votes is not None
    assert (first.votes["needed"], first.votes["given"], first.votes["by"][0]["by"]) == (2, 1, "asha")
    assert (first.run, first.decision["outcome"]) == (run, "voted")
    assert statuses(run) == (Status.AWAITING, 1)
    assert [vote["by"] for vote in detail(key, acting(bo))["votes"]] == ["asha"]
    second = decide(key, approved=True, actor=acting(bo))
    assert second.votes is None
    assert statuses(run) == (Status.QUEUED, 2)
    entries = list(AuditEntry.objects.order_by("id").values_list("act", "actor", "outcome", "reason"))
    assert entries == [("vote", "asha", "approved", "read it"), ("decide", "bo", "approved", "")]
    proof = json.loads(AuditEntry.objects.get(act="decide").policy)
    assert [vote["by"] for vote in proof["votes"]] == ["asha", "bo"]
    assert proof["rule"] == "is in the group finance"
    assert audit.verify().first_bad is None
    assert audit.seal() == 2
    assert audit.verify().first_bad is None


def test_the_same_person_counts_once_on_whatever_surface(spec: SpecFile, asha: User) -> None:
    run, key = to_pause(spec)
    approve(key, asha)
    for surface in ("api", "admin", "cli", "slack"):
        with pytest.raises(NotAllowed, match="you approved this already"):
            decide(key, approved=True, actor=acting(asha, surface))
    assert Vote.objects.count() == AuditEntry.objects.count() == 1
    assert detail(key, acting(asha))["may"] == {
        "decide": True,
        "approve": False,
        "reject": True,
        "breakGlass": False,
        "delegate": False,
        "rule": "you approved this already; it needs other people as well",
    }
    assert statuses(run) == (Status.AWAITING, 1)


def test_one_rejection_ends_it_also_by_somebody_who_approved(spec: SpecFile, asha: User, bo: User) -> None:
    for who in (bo, asha):
        run, key = to_pause(spec)
        approve(key, asha)
        decide(key, approved=False, reason="no", actor=acting(who))
        assert newest(run).status == Status.REJECTED
        with pytest.raises(ApprovalNotFound) as told:
            approve(key, bo)
        assert told.value.extra["decision"]["outcome"] == "rejected"


def test_whoever_left_in_between_counts_no_more(spec: SpecFile, asha: User, bo: User) -> None:
    third = member("chitra", "finance")
    leavings: dict[str, Callable[[], object]] = {
        "the group": lambda: asha.groups.clear(),
        "the house": lambda: User.objects.filter(pk=asha.pk).update(is_active=False),
        "the permission": lambda: asha.user_permissions.clear(),
        "us": lambda: asha.delete(),
    }
    for leave in leavings.values():
        run, key = to_pause(spec)
        approve(key, asha)
        leave()
        outcome = decide(key, approved=True, actor=acting(bo))
        assert outcome.votes is not None
        assert [vote["by"] for vote in outcome.votes["by"]] == ["bo"]
        assert newest(run).status == Status.AWAITING
        approve(key, third)
        assert newest(run).status == Status.QUEUED
        User.objects.filter(username="asha").delete()
        asha = member("asha", "finance")


def test_who_comes_back_counts_again(spec: SpecFile, asha: User, bo: User) -> None:
    run, key = to_pause(spec)
    approve(key, asha)
    asha.groups.clear()
    approve(key, bo)
    asha.groups.add(Group.objects.get(name="finance"))
    third = member("chitra", "finance")
    approve(key, third)
    assert newest(run).status == Status.QUEUED


def test_who_is_not_in_the_group_is_refused_superusers_too(spec: SpecFile, people: People) -> None:
    run, key = to_pause(spec)
    root = member("root", "others", superuser=True)
    for who in (people.approver, root):
        for approved in (True, False):
            with pytest.raises(NotAllowed, match="members of finance only"):
                decide(key, approved=approved, actor=acting(who))
    assert detail(key, acting(root))["may"]["decide"] is False
    assert Vote.objects.count() == 0
    assert statuses(run) == (Status.AWAITING, 1)


def test_a_vote_for_what_was_shown_before_counts_no_more(spec: SpecFile, asha: User, bo: User) -> None:
    _, key = to_pause(spec)
    approve(key, asha)
    Vote.objects.update(digest="1:other")
    outcome = decide(key, approved=True, actor=acting(bo))
    assert outcome.votes is not None
    assert outcome.votes["given"] == 1
    again = decide(key, approved=True, actor=acting(asha))
    assert again.votes is None
    assert Vote.objects.count() == 2


def test_named_users_and_groups_together_are_one_circle(tmp_path: Path, asha: User, people: People) -> None:
    run, key = to_pause(a_sign(tmp_path, "approvers: {users: [approver], groups: [finance], quorum: 2}"))
    approve(key, people.approver)
    approve(key, asha)
    assert newest(run).status == Status.QUEUED
    assert json.loads(AuditEntry.objects.get(act="vote").policy)["rule"] == "is one of the users that the spec names"


def test_a_quorum_without_names_counts_whoever_holds_the_permission(tmp_path: Path, asha: User, people: People) -> None:
    run, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}"))
    approve(key, people.approver)
    approve(key, member("root", superuser=True))
    assert newest(run).status == Status.QUEUED


@pytest.mark.parametrize(
    ("approvers", "words"),
    [
        ("{groups: [finance], quorum: 3}", "only 2 of members of finance may approve today, and 3 must"),
        ("{groups: [ghosts]}", "nobody of members of ghosts may approve today, and 1 must"),
        ("{users: [nobody-here]}", "nobody of nobody-here"),
        ("{groups: [finance], quorum: 2}", ""),
    ],
)
def test_a_request_that_nobody_can_satisfy_says_so(
    tmp_path: Path, asha: User, bo: User, approvers: str, words: str
) -> None:
    _, key = to_pause(a_sign(tmp_path, f"approvers: {approvers}"))
    doubt = ApprovalRequest.objects.get(key=key).doubt
    assert words in doubt
    assert bool(doubt) == bool(words)
    assert [line.get("doubt", "") for line in waiting().items] == [doubt], "the list says so the moment it is opened"
    told = command("approvals", "show", key, "--as", "asha")
    assert (f"Nobody can satisfy this: {doubt}." in told.out) == bool(words)


def test_four_eyes_can_make_it_unsatisfiable(tmp_path: Path, asha: User, bo: User) -> None:
    spec = a_sign(tmp_path, "approvers: {groups: [finance], quorum: 2, four_eyes: true}")
    _, key = to_pause(spec, actor=acting(asha))
    assert "only 1 of members of finance who did not start the run" in ApprovalRequest.objects.get(key=key).doubt
    _, key = to_pause(spec)
    assert ApprovalRequest.objects.get(key=key).doubt == ""


def test_a_cancelled_request_keeps_in_its_proof_who_had_approved(spec: SpecFile, asha: User, people: People) -> None:
    run, key = to_pause(spec)
    approve(key, asha)
    cancel_run(run, actor=acting(people.operator), reason="bought elsewhere")
    entry = AuditEntry.objects.get(key=key, act="cancel")
    proof = json.loads(entry.policy)
    assert proof["policy"]["approvers"]["quorum"] == 2
    assert [vote["by"] for vote in proof["votes"]] == ["asha"]
