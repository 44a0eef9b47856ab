"""Many requests and many runs at once: first what they are, then what became of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import scenes
from tests.surfaces.admin.conftest import QUEUE, RUNS
from tests.workbench import acting, begin, to_pause
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import cancel_run, newest

SignedIn = Callable[[User], Client]
BULK = f"{QUEUE}bulk/"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approver(people: People, signed_in: SignedIn) -> Client:
    return signed_in(people.approver)


def _pk(key: str) -> int:
    return ApprovalRequest.objects.get(key=key).pk


def _confirm(browser: Client, act: str, pks: list[int], **more: str) -> Any:
    """Tick, look, confirm: what the confirmation shows is what is sent."""
    shown = browser.post(BULK, {"act": act, "pick": pks})
    assert shown.status_code == 200
    fields: dict[str, Any] = {"act": act, "confirmed": "yes", "pick": [row["pk"] for row in shown.context["rows"]]}
    fields |= {f"digest-{row['pk']}": row["digest"] for row in shown.context["rows"]}
    return browser.post(BULK, fields | more)


def _told(page: Any) -> list[tuple[str, str]]:
    return [(result["badge"].text, result["told"]) for result in page.context["results"]]


def test_the_rows_are_listed_with_what_each_will_do_before_anything_is_done(
    approver: Client, paying: SpecFile, asking: SpecFile, tools: FakeTools
) -> None:
    (_, pay), (_, ask) = to_pause(paying), to_pause(asking)
    page = approver.post(BULK, {"act": "approve", "pick": [_pk(pay), _pk(ask), _pk(pay)]})
    shown = page.content.decode()
    host = tools.url.removeprefix("http://")
    assert f"POST {host} with the tool pay" in shown
    assert "Go on with go?" in shown
    assert [row["digest"] for row in page.context["rows"]] == [
        ApprovalRequest.objects.get(key=key).digest for key in (pay, ask)
    ]
    assert ApprovalRequest.objects.filter(status="open").count() == 2
    assert not AuditEntry.objects.exists()


def test_each_row_is_done_or_refused_by_name(approver: Client, asking: SpecFile, people: People, clock: Clock) -> None:
    waiting = scenes.many(asking, 4)
    pks = [_pk(key) for _, key in waiting]
    shown = approver.post(BULK, {"act": "approve", "pick": pks})
    decide(waiting[1][1], approved=False, reason="mine", actor=acting(people.approver, "api"))
    cancel_run(waiting[2][0], actor=acting(people.operator), reason="off")
    fields = {f"digest-{row['pk']}": row["digest"] for row in shown.context["rows"]}
    fields[f"digest-{pks[3]}"] = "1:other"
    page = approver.post(BULK, {"act": "approve", "confirmed": "yes", "pick": pks, "reason": "all fine", **fields})
    told = _told(page)
    assert page.status_code == 200
    assert [badge for badge, _ in told] == ["done", "refused", "refused", "refused"]
    assert "rejected by approver" in told[1][1]
    assert "cancelled by operator" in told[2][1]
    assert "not the one that you were shown" in told[3][1]
    assert "Approve: 1 of 4 done" in page.content.decode()
    assert AuditEntry.objects.get(outcome="approved").reason == "all fine"
    waiting[3][0].refresh_from_db()
    assert waiting[3][0].status == Status.AWAITING


def test_rejecting_many_ends_each(approver: Client, asking: SpecFile) -> None:
    waiting = scenes.many(asking, 3)
    page = _confirm(approver, "reject", [_pk(key) for _, key in waiting], reason="not now")
    assert [badge for badge, _ in _told(page)] == ["done"] * 3
    assert {newest(run).status for run, _ in waiting} == {Status.REJECTED}


def test_a_changed_spec_is_foreseen_for_approving_alone(approver: Client, asking: SpecFile) -> None:
    _, key = to_pause(asking)
    asking.path.write_text(asking.path.read_text().replace("Go on with", "Really go on with"))
    listed = approver.post(BULK, {"act": "approve", "pick": [_pk(key)]}).content.decode()
    assert "Its spec changed since the run started" in listed
    told = _told(_confirm(approver, "approve", [_pk(key)]))
    assert told[0][0] == "refused"
    assert asking.hash[:12] in told[0][1]
    assert _told(_confirm(approver, "reject", [_pk(key)]))[0][0] == "done"


def test_rows_outside_the_list_are_counted_and_not_named(approver: Client, asking: SpecFile) -> None:
    (_, mine), (_, theirs) = to_pause(asking), to_pause(asking, input="their secret")
    ApprovalRequest.objects.filter(key=theirs).update(workspace="other", step="hidden step")
    picks = [_pk(mine), _pk(theirs), 987654321]
    shown = approver.post(BULK, {"act": "approve", "pick": picks}).content.decode()
    fields = {f"digest-{pk}": ApprovalRequest.objects.get(key=mine).digest for pk in picks}
    page = approver.post(BULK, {"act": "approve", "confirmed": "yes", "pick": picks, **fields})
    for text in (shown, page.content.decode()):
        assert "2 of the ticked rows are not among those that you may act on" in text
        assert "hidden step" not in text
        assert "their secret" not in text
    assert [badge for badge, _ in _told(page)] == ["done"]
    assert ApprovalRequest.objects.get(key=theirs).status == "open"


def test_nothing_ticked_and_no_act_lead_back_with_a_word(approver: Client, waiting: tuple[Run, str]) -> None:
    for fields in ({"act": "approve"}, {"pick": [_pk(waiting[1])]}, {"act": "approve", "pick": ["x", "-1", ""]}):
        answer = approver.post(BULK, fields, follow=True)
        assert answer.redirect_chain == [(QUEUE, 302)]
        assert "Tick at least one request" in answer.content.decode()
    assert approver.get(BULK).status_code == 302


def test_too_long_a_reason_is_told_and_decides_nothing(approver: Client, waiting: tuple[Run, str]) -> None:
    page = _confirm(approver, "approve", [_pk(waiting[1])], reason="x" * 4001)
    assert page.status_code == 400
    assert "at most 4000 characters" in page.content.decode()
    waiting[0].refresh_from_db()
    assert waiting[0].status == Status.AWAITING


def test_retry_and_cancel_on_mixed_runs_answer_each_row_and_leave_waiting_ones_alone(
    people: People, signed_in: SignedIn, paying: SpecFile, asking: SpecFile
) -> None:
    operator = signed_in(people.operator)
    waiting, _ = to_pause(asking)
    queued = begin(asking)
    lost = scenes.interrupted(paying)
    gone = cancel_run(begin(asking), actor=acting(people.operator))
    runs = [waiting, queued, lost, gone]
    fields: dict[str, Any] = {"act": "retry", "pick": [run.pk for run in runs]}
    listed = operator.post(f"{RUNS}bulk/", fields)
    assert [bool(row["problem"]) for row in listed.context["rows"]] == [True, True, False, True]
    unsaid = operator.post(f"{RUNS}bulk/", fields | {"confirmed": "yes"})
    assert unsaid.status_code == 400
    assert "Say why, in a few words." in unsaid.content.decode()
    page = operator.post(f"{RUNS}bulk/", fields | {"confirmed": "yes", "reason": "looked at the other side"})
    assert [badge for badge, _ in _told(page)] == ["refused", "refused", "done", "refused"]
    assert "awaiting_approval" in _told(page)[0][1]
    assert ApprovalRequest.objects.get(run=waiting).status == "open"
    page = operator.post(f"{RUNS}bulk/", fields | {"act": "cancel", "confirmed": "yes", "reason": ""})
    assert [badge for badge, _ in _told(page)] == ["done", "done", "refused", "refused"]
    assert "went on meanwhile" in _told(page)[2][1]
    assert ApprovalRequest.objects.get(run=waiting).status == "cancelled"
