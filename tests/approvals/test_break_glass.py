"""Breaking the glass: permission and reason, marked and told; it lifts four eyes and the number, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import audit, policy
from approvals.delegating import delegate
from approvals.errors import ActionChanged
from approvals.models import ApprovalRequest, AuditEntry, Notice, Vote
from approvals.queue import detail
from approvals.services import Outcome, decide
from tests.approvals.policies import a_sign, member
from tests.conftest import People, allow
from tests.surfaces.api.conftest import with_token
from tests.surfaces.cli.running import command
from tests.workbench import acting, to_pause
from workflows.errors import Invalid, NotAllowed, SpecChanged
from workflows.models import Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

BOTH = "approvers: {groups: [finance], quorum: 2, four_eyes: true}"


@pytest.fixture
def ines(db: None) -> User:
    """Of the group, and in charge of the glass."""
    return allow(member("ines", "finance"), "approvals.break_glass", "workflows.start_run")


def smash(key: str, user: User, reason: str | None = "the bank closes at five", **more: Any) -> Outcome:
    return decide(key, approved=True, actor=acting(user), reason=reason, break_glass=True, **more)


def untouched(key: str) -> bool:
    return ApprovalRequest.objects.get(key=key).status == "open" and not AuditEntry.objects.exists()


@pytest.mark.parametrize("approvers", [BOTH, "approvers: {four_eyes: true}", "approvers: {quorum: 3}"])
def test_it_lifts_four_eyes_and_the_number_and_says_so(tmp_path: Path, ines: User, approvers: str) -> None:
    run, key = to_pause(a_sign(tmp_path, approvers), actor=acting(ines))
    assert detail(key, acting(ines))["may"]["breakGlass"] is True
    assert smash(key, ines).votes is None
    assert newest(run).status == Status.QUEUED
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.outcome, entry.reason) == ("decide", "approved", "the bank closes at five")
    assert json.loads(entry.details)["glass_broken"] is True
    assert "the glass was broken" in json.loads(entry.policy)["rule"]
    assert Vote.objects.count() == 0
    assert audit.verify().first_bad is None


def test_everybody_is_told(tmp_path: Path, ines: User) -> None:
    notify = "notify: [{type: email, to: [all@house.test]}]"
    asha = member("asha", "finance")
    _, key = to_pause(a_sign(tmp_path, f"{BOTH}, {notify}"), actor=acting(ines))
    smash(key, ines)
    told = Notice.objects.filter(about="glass_broken").order_by("id")
    assert [json.loads(one.address) for one in told] == [{"to": "all@house.test"}, {"user": asha.pk}]
    assert [json.loads(one.facts) for one in told] == [{"by": "ines", "reason": "the bank closes at five"}] * 2


def test_who_voted_who_stands_in_and_who_started_it_are_told_as_well(tmp_path: Path, ines: User) -> None:
    asha, ben, olaf = member("asha", "finance"), member("ben", "finance"), member("olaf")
    starter = User.objects.create(username="stan", email="stan@house.test")
    member("bystander")
    spec = a_sign(tmp_path, "approvers: {groups: [finance], quorum: 3, four_eyes: true, delegate: true}")
    _, key = to_pause(spec, actor=acting(starter))
    delegate(key, to="olaf", actor=acting(ben))
    decide(key, approved=True, actor=acting(asha))
    smash(key, ines)
    told = Notice.objects.filter(about="glass_broken")
    assert {json.loads(one.address)["user"] for one in told} == {asha.pk, ben.pk, olaf.pk, starter.pk}


def test_the_permission_and_the_circle_are_needed_all_the_same(tmp_path: Path, ines: User) -> None:
    _, key = to_pause(a_sign(tmp_path, BOTH), actor=acting(ines))
    asha = member("asha", "finance")
    outside = allow(member("olaf"), "approvals.break_glass")
    viewer = allow(User.objects.create(username="vera"), "approvals.break_glass", "approvals.view_request")
    for user, rule in (
        (asha, "breaking the glass needs the permission approvals.break_glass"),
        (outside, "members of finance only"),
        (viewer, "the permission approvals.decide is needed"),
    ):
        with pytest.raises(NotAllowed, match=rule):
            smash(key, user)
        assert detail(key, acting(user))["may"]["breakGlass"] is False
    assert untouched(key)


def test_a_superuser_holds_the_permission_and_four_eyes_until_the_glass_breaks(tmp_path: Path) -> None:
    root = member("root", superuser=True)
    run, key = to_pause(a_sign(tmp_path, "approvers: {four_eyes: true}"), actor=acting(root))
    with pytest.raises(NotAllowed, match="four eyes"):
        decide(key, approved=True, actor=acting(root), reason="I am root")
    with pytest.raises(Invalid, match="a reason is needed"):
        smash(key, root, reason="  ")
    assert untouched(key)
    smash(key, root)
    assert newest(run).status == Status.QUEUED


def test_where_nothing_holds_back_there_is_no_glass(tmp_path: Path, ines: User) -> None:
    cases = (("approvers: {groups: [finance]}", ines), ("approvers: {four_eyes: true}", ines), ("mode: gate", ines))
    for approvers, user in cases:
        _, key = to_pause(a_sign(tmp_path, approvers))
        with pytest.raises(NotAllowed, match="no glass here to break"):
            smash(key, user)
        assert detail(key, acting(user))["may"]["breakGlass"] is False
    assert not AuditEntry.objects.exists()


def test_whoever_voted_already_may_break_it_and_the_votes_stay_in_the_proof(tmp_path: Path, ines: User) -> None:
    run, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 3}"))
    decide(key, approved=True, actor=acting(member("asha")))
    decide(key, approved=True, actor=acting(ines))
    smash(key, ines)
    assert newest(run).status == Status.QUEUED
    proof = json.loads(AuditEntry.objects.get(act="decide").policy)
    assert [vote["by"] for vote in proof["votes"]] == ["asha", "ines"]


def test_it_lifts_neither_the_form_nor_the_spec_nor_the_digest(tmp_path: Path, ines: User) -> None:
    form = "form: {type: object, required: [account], properties: {account: {type: string}}}"
    spec = a_sign(tmp_path, f"{BOTH}, {form}")
    _, key = to_pause(spec, actor=acting(ines))
    with pytest.raises(Invalid, match="account"):
        smash(key, ines, answers={})
    with pytest.raises(ActionChanged):
        smash(key, ines, answers={"account": "main"}, digest="1:other")
    spec.path.write_text(spec.text.replace("Really?", "Surely?"), encoding="utf-8")
    with pytest.raises(SpecChanged):
        smash(key, ines, answers={"account": "main"})
    assert untouched(key)


def test_a_rejection_needs_none(tmp_path: Path, ines: User) -> None:
    _, key = to_pause(a_sign(tmp_path, BOTH), actor=acting(ines))
    with pytest.raises(Invalid, match="a rejection needs no broken glass"):
        decide(key, approved=False, actor=acting(ines), reason="no", break_glass=True)
    assert untouched(key)


def test_over_rest_and_at_the_command_line(tmp_path: Path, ines: User, people: People) -> None:
    caller = with_token(ines)
    run, key = to_pause(a_sign(tmp_path, BOTH), actor=acting(ines))
    path = f"/approvals/{key}/approve?wait=0"
    assert caller.post(path, {"approved": True, "breakGlass": "yes"}).json()["errors"][0]["path"] == "breakGlass"
    unreasoned = caller.post(path, {"approved": True, "breakGlass": True})
    assert (unreasoned.status_code, unreasoned.json()["errors"][0]["path"]) == (400, "reason")
    assert with_token(people.approver).post(path, {"approved": True, "breakGlass": True}).status_code == 403
    assert caller.post(path, {"approved": True}).status_code == 403
    assert untouched(key)
    assert caller.post(path, {"approved": True, "breakGlass": True, "reason": "fire"}).status_code == 200
    assert newest(run).status == Status.QUEUED

    _, key = to_pause(a_sign(tmp_path, BOTH), actor=acting(ines))
    assert command("approvals", "approve", key, "--as", "ines").code == 2
    assert command("approvals", "approve", key, "--as", "ines", "--break-glass").code == 2
    assert command("approvals", "reject", key, "--as", "ines", "--break-glass").code == 64
    assert ApprovalRequest.objects.get(key=key).status == "open"
    done = command("approvals", "approve", key, "--as", "ines", "--break-glass", "--reason", "fire")
    assert "Approved by ines." in done.out
    kept = AuditEntry.objects.get(key=key)
    assert (kept.surface, json.loads(kept.details)["glass_broken"]) == ("cli", True)


def test_the_page_and_the_door_give_one_answer(tmp_path: Path, ines: User) -> None:
    """`Person.may` draws the buttons; what it allows goes through, what it refuses is refused with its words."""
    _, key = to_pause(a_sign(tmp_path, BOTH), actor=acting(ines))
    request = ApprovalRequest.objects.select_related("run").get(key=key)
    for user in (member("asha", "finance"), member("olaf"), ines):
        person = policy.Person(acting(user))
        person.look_at([request])
        verdict = person.may(request, approve=True, break_glass=True)
        if verdict.allowed:
            smash(key, user)
            continue
        with pytest.raises(NotAllowed) as refused:
            smash(key, user)
        assert refused.value.extra["rule"] == verdict.rule
