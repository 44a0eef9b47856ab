"""One proof for all surfaces: the same people may, the same refusals are told, the same audit rows are left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import audit
from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry, Vote
from approvals.notices import sender
from approvals.services import decide
from tests.approvals.policies import member
from tests.conftest import Clock, People, allow
from tests.surfaces.everywhere.surfaces import Press, Surface
from tests.surfaces.slack.conftest import asking
from tests.workbench import acting, to_pause
from workflows.models import Run, Status
from workflows.runs import cancel_run, newest

pytestmark = pytest.mark.django_db(transaction=True)

YES, NO = Press(approved=True), Press(approved=False)
FORM = "form: {type: object, required: [amount], properties: {amount: {type: integer, maximum: 500}}}"
GROUP = "approvers: {groups: [finance]}"
FOUR_EYES = "approvers: {four_eyes: true}"
WAITING = ("open", Status.AWAITING)


def waiting(folder: Path, policy: str = "", starter: User | None = None) -> tuple[Run, ApprovalRequest]:
    by: dict[str, Any] = {} if starter is None else {"actor": acting(starter)}
    run, key = to_pause(asking(folder, policy), **by)
    sender.send_due()  # the card is in the channel, whoever decides where
    return run, ApprovalRequest.objects.get(key=key)


def stands(run: Run, request: ApprovalRequest) -> tuple[str, str]:
    """Where the request is and its run; of one that was decided, whether another goes on or is rejected."""
    request.refresh_from_db()
    present = newest(run).status
    goes_on = present in (Status.QUEUED, Status.AWAITING)  # a terminal works on itself, to the next pause
    return request.status, "goes on" if request.status == "decided" and goes_on else present


def entries(request: ApprovalRequest) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(key=str(request.key)).order_by("id"))


def refused(told: str, words: str, run: Run, request: ApprovalRequest) -> None:
    """The words are read, and nothing was changed or consumed."""
    assert words in told, told
    assert stands(run, request) == WAITING
    assert entries(request) == []
    assert not Vote.objects.exists()


@pytest.mark.parametrize(
    ("press", "outcome", "ends"), [(YES, "approved", "goes on"), (NO, "rejected", Status.REJECTED)]
)
def test_who_may_decide_does_and_leaves_the_same_row(
    surface: Surface, people: People, tmp_path: Path, press: Press, outcome: str, ends: str
) -> None:
    run, request = waiting(tmp_path)
    surface.press(people.approver, request, press)
    assert stands(run, request) == ("decided", ends)
    (entry,) = entries(request)
    content = {name: getattr(entry, name) for name in audit.CONTENT if name not in ("actor_detail", "surface")}
    assert content == {
        "workspace": "default",
        "act": "decide",
        "outcome": outcome,
        "key": str(request.key),
        "run": str(run.uuid),
        "successor": str(newest(run).uuid),
        "agent_id": "clerk",
        "step": "sign",
        "actor": "approver",
        "actor_user_id": people.approver.pk,
        "reason": "",
        "digest": request.digest,
        "digest_sent": surface.shows,
        "spec_hash": run.spec_hash,
        "answers": "",
        "policy": json.dumps({"policy": {}, "rule": "holds approvals.decide"}, separators=(",", ":")),
    }
    assert (entry.surface, entry.details) == (surface.name, "")
    assert bool(entry.actor_detail) == (surface.name != "admin")


def test_without_the_permission_nobody_decides(surface: Surface, tmp_path: Path) -> None:
    reader = allow(User.objects.create(username="ro", is_staff=True, email="ro@example.org"), "approvals.view_request")
    run, request = waiting(tmp_path)
    refused(surface.press(reader, request, YES), "the permission approvals.decide is needed", run, request)


def test_a_deactivated_person_decides_nothing(surface: Surface, people: People, tmp_path: Path) -> None:
    run, request = waiting(tmp_path)
    surface.meet(people.approver)
    User.objects.filter(pk=people.approver.pk).update(is_active=False)
    surface.press(User.objects.get(pk=people.approver.pk), request, YES)
    assert stands(run, request) == WAITING
    assert entries(request) == []


@pytest.mark.parametrize("press", [YES, NO])
def test_who_is_not_in_the_group_is_told_who_is(surface: Surface, people: People, tmp_path: Path, press: Press) -> None:
    run, request = waiting(tmp_path, GROUP)
    refused(surface.press(people.approver, request, press), "members of finance only", run, request)


def test_a_group_that_nobody_is_in_lets_nobody_decide(surface: Surface, people: People, tmp_path: Path) -> None:
    """Scenario 35: the request said so when it opened, and the doctor says it before."""
    run, request = waiting(tmp_path, "approvers: {groups: [phantoms]}")
    assert request.doubt.endswith('there is no group "phantoms"')
    refused(surface.press(people.approver, request, YES), "members of phantoms only", run, request)


def test_a_member_of_the_group_decides_by_that_rule(surface: Surface, tmp_path: Path) -> None:
    run, request = waiting(tmp_path, GROUP)
    surface.press(member("asha", "finance"), request, YES)
    assert stands(run, request) == ("decided", "goes on")
    assert json.loads(entries(request)[0].policy)["rule"] == "is in the group finance"


@pytest.mark.parametrize("superuser", [False, True])
def test_four_eyes_hold_for_whoever_started_it(surface: Surface, tmp_path: Path, superuser: bool) -> None:
    starter = member("asha", superuser=superuser)
    run, request = waiting(tmp_path, FOUR_EYES, starter)
    refused(surface.press(starter, request, YES), "four eyes: whoever started the run may not approve it", run, request)
    surface.press(starter, request, NO)
    assert stands(run, request) == ("decided", Status.REJECTED)


def test_where_one_may_approve_ones_own_the_proof_says_so(surface: Surface, tmp_path: Path) -> None:
    """Scenario 36, with the setting on."""
    starter = member("asha")
    run, request = waiting(tmp_path, "approvers: {four_eyes: false}", starter)
    surface.press(starter, request, YES)
    assert stands(run, request) == ("decided", "goes on")
    assert json.loads(entries(request)[0].policy)["rule"] == "holds approvals.decide; started the run as well"


def test_two_people_are_two_people(surface: Surface, people: People, tmp_path: Path) -> None:
    run, request = waiting(tmp_path, "approvers: {quorum: 2}")
    surface.press(people.approver, request, YES)
    assert stands(run, request) == WAITING
    assert [entry.act for entry in entries(request)] == ["vote"]
    told = surface.press(people.approver, request, YES)
    assert "you approved this already" in told
    assert [entry.act for entry in entries(request)] == ["vote"]
    request.refresh_from_db()
    surface.press(member("bo"), request, YES)
    assert stands(run, request) == ("decided", "goes on")
    first, last = entries(request)
    assert (first.act, last.act, last.actor) == ("vote", "decide", "bo")
    assert [vote["by"] for vote in json.loads(last.policy)["votes"]] == ["approver", "bo"]


def test_a_reason_that_is_needed_is_asked_for(surface: Surface, people: People, tmp_path: Path) -> None:
    run, request = waiting(tmp_path, "require_reason: always")
    refused(surface.press(people.approver, request, YES), "a reason is needed here", run, request)
    surface.press(people.approver, request, Press(approved=True, reason="seen the invoice"))
    assert stands(run, request) == ("decided", "goes on")
    assert entries(request)[0].reason == "seen the invoice"


@pytest.mark.parametrize(("amount", "words"), [(None, "amount"), ("501", "500"), ("a lot", "amount")])
def test_answers_that_do_not_fit_are_refused_at_their_field(
    surface: Surface, people: People, tmp_path: Path, amount: str | None, words: str
) -> None:
    run, request = waiting(tmp_path, FORM)
    refused(surface.press(people.approver, request, Press(approved=True, amount=amount)), words, run, request)


def test_answers_are_kept_as_what_they_are(surface: Surface, people: People, tmp_path: Path) -> None:
    run, request = waiting(tmp_path, FORM)
    surface.press(people.approver, request, Press(approved=True, amount="120"))
    assert stands(run, request) == ("decided", "goes on")
    assert entries(request)[0].answers == '{"amount":120}'


def test_a_changed_spec_is_approved_nowhere_and_rejected_everywhere(
    surface: Surface, people: People, tmp_path: Path
) -> None:
    run, request = waiting(tmp_path)
    asking(tmp_path, "require_reason: reject")
    refused(surface.press(people.approver, request, YES), "spec changed", run, request)
    surface.press(people.approver, request, NO)
    assert stands(run, request) == ("decided", Status.REJECTED)


def test_what_is_over_is_told_with_its_end(surface: Surface, people: People, tmp_path: Path, clock: Clock) -> None:
    run, request = waiting(tmp_path)
    decide(str(request.key), approved=True, actor=acting(people.approver))
    before = (stands(run, request), len(entries(request)))
    assert "approved by approver" in surface.press(people.approver, request, NO).lower()
    assert (stands(run, request), len(entries(request))) == before

    run, request = waiting(tmp_path)
    cancel_run(run, actor=acting(people.operator))
    assert "cancelled by operator" in surface.press(people.approver, request, YES).lower()
    assert stands(run, request) == ("cancelled", Status.CANCELLED)

    for swept in (False, True):
        run, request = waiting(tmp_path)
        clock.advance(8 * 24 * 3600)
        if swept:
            expire_due()
        assert "expired" in surface.press(people.approver, request, YES).lower()
        assert stands(run, request)[1] == (Status.EXPIRED if swept else Status.AWAITING)
