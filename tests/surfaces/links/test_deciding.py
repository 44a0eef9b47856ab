"""A signed link decides as the person it was sent to, under the policy of every other surface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import override_settings

from approvals import services
from approvals.editing import edit_request
from approvals.models import ApprovalRequest, AuditEntry, Look, Vote
from tests.approvals.policies import a_pay, a_sign, member, text_of, written
from tests.conftest import People
from tests.surfaces.everywhere.surfaces import words_of
from tests.surfaces.forms import LEAST, LEAST_ANSWERS, answering
from tests.surfaces.links.conftest import Reader, hidden, link_of
from tests.workbench import acting, begin, key_of, to_pause, work
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest

Waiting = tuple[Run, str]

pytestmark = pytest.mark.django_db(transaction=True)


def still_waits(key: str) -> bool:
    return ApprovalRequest.objects.get(key=key).status == "open" and not AuditEntry.objects.filter(key=key).exists()


@pytest.mark.parametrize(("verdict", "outcome"), [("approve", "approved"), ("reject", "rejected")])
def test_pressing_a_button_decides_as_the_recipient_and_shows_what_became_of_it(
    waiting: Waiting, people: People, verdict: str, outcome: str
) -> None:
    run, key = waiting
    reader = Reader(link_of(key, people.approver))
    answer = reader.press(verdict, reason="looked at it")
    assert (answer.status_code, answer["Location"]) == (302, reader.link)
    assert f"This request is over: {outcome} by approver on" in reader.text
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.outcome, entry.actor, entry.actor_user_id) == (
        "decide",
        outcome,
        "approver",
        people.approver.pk,
    )
    assert (entry.surface, entry.actor_detail) == ("link", "approver@example.org")
    assert (entry.reason, entry.digest_sent) == ("looked at it", True)
    assert newest(run).pk != run.pk


@pytest.mark.parametrize("confirm", [None, "", "no", ["yes", "yes"]])
def test_without_the_tick_nothing_is_decided_and_what_was_typed_stays(
    waiting: Waiting, people: People, confirm: Any
) -> None:
    reader = Reader(link_of(waiting[1], people.approver))
    assert "I am approver and I have read this" in reader.text
    answer = reader.press("approve", confirm=confirm, reason="a long story")
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Nothing was decided: the box above the buttons is not ticked." in page
    assert "a long story</textarea>" in page
    assert " checked" not in page
    assert still_waits(waiting[1])
    assert reader.press("approve").status_code == 302


@pytest.mark.parametrize("verdict", ["", "Approve", "delegate", ["approve", "reject"]])
def test_a_form_that_does_not_say_which_decides_nothing(waiting: Waiting, people: People, verdict: Any) -> None:
    answer = Reader(link_of(waiting[1], people.approver)).press(verdict)
    assert (answer.status_code, "Press Approve or Reject." in answer.content.decode()) == (400, True)
    assert still_waits(waiting[1])


def test_a_form_from_elsewhere_is_refused(waiting: Waiting, people: People) -> None:
    link = link_of(waiting[1], people.approver)
    digest = ApprovalRequest.objects.get(key=waiting[1]).digest
    sent = {"verdict": "approve", "confirm": "yes", "digest": digest}
    assert Client(enforce_csrf_checks=True).post(link, sent).status_code == 403
    reader = Reader(link)
    forged = reader.client.post(link, reader.filled("approve"), headers={"Origin": "https://evil.example"})
    hidden_from = reader.client.post(link, reader.filled("approve"), headers={"Origin": "null"})
    assert (forged.status_code, hidden_from.status_code) == (403, 403)
    assert still_waits(waiting[1])


def test_somebody_elses_session_in_the_browser_does_not_matter_and_is_told(waiting: Waiting, people: People) -> None:
    boss = User.objects.create(username="boss", is_superuser=True, is_staff=True)
    reader = Reader(link_of(waiting[1], people.approver), user=boss)
    page = reader.text
    assert "In this browser boss is signed in." in page
    assert "You decide as approver (approver@example.org)" in page
    reader.press("approve")
    assert AuditEntry.objects.get().actor == "approver"
    own = Reader(link_of(waiting[1], people.approver), user=people.approver)
    assert "is signed in" not in own.text


def test_who_may_see_and_not_decide_sees_why_and_no_buttons(tmp_path: Path, people: People) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {groups: [finance]}"))
    member("ben", "finance")
    for user, rule in (
        (people.operator, "the permission approvals.decide is needed"),
        (people.approver, "this may be decided by members of finance only"),
    ):
        reader = Reader(link_of(key, user))
        page = reader.text
        assert f"You may read this request and not decide it: {rule}" in page
        assert 'name="verdict"' not in page
        digest = ApprovalRequest.objects.get(key=key).digest
        token = Client().get(reader.link)  # no form, no token: taken from another page of the site
        assert "csrftoken" not in token.cookies
        answer = Client().post(reader.link, {"verdict": "approve", "confirm": "yes", "digest": digest})
        assert answer.status_code == 403
        assert rule in answer.content.decode()
    assert still_waits(key)


@pytest.mark.parametrize("gone", ["deactivated", "without permission"])
def test_who_lost_their_right_since_the_mail_sees_nothing_of_it(waiting: Waiting, people: People, gone: str) -> None:
    reader = Reader(link_of(waiting[1], people.approver))
    sent = reader.filled("approve")
    if gone == "deactivated":
        User.objects.filter(pk=people.approver.pk).update(is_active=False)
    else:
        people.approver.user_permissions.set(Permission.objects.none())
    for answer in (reader.read(), reader.send(sent)):
        page = answer.content.decode()
        assert answer.status_code == 403
        assert "You may not see this request" in page
        assert "Go on with" not in page
    assert still_waits(waiting[1])


def test_four_eyes_hold_here_too(tmp_path: Path, people: People) -> None:
    ben = member("ben")
    run, key = to_pause(a_sign(tmp_path, "approvers: {four_eyes: true}"), actor=acting(ben))
    User.objects.filter(pk=ben.pk).update(email="ben@example.org")
    reader = Reader(link_of(key, ben))
    assert "four eyes: whoever started the run may not approve it" in reader.text
    assert reader.press("approve").status_code == 403
    assert still_waits(key)
    assert reader.press("reject").status_code == 302
    assert newest(run).status == Status.REJECTED


def test_two_people_vote_by_a_link_each(tmp_path: Path, people: People) -> None:
    asha, ben = member("asha"), member("ben")
    run, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}"))
    first, second = Reader(link_of(key, asha)), Reader(link_of(key, ben))
    assert "2 people must approve" in first.text
    assert first.press("approve").status_code == 302
    page = first.text
    assert "Your approval counts. 1 more person must approve before the run goes on." in page
    assert "1 of 2 approved: asha" in page
    again = first.press("approve")
    assert again.status_code == 403
    assert "you approved this already" in again.content.decode()
    assert "Your approval counts" not in second.text
    second.press("approve")
    assert newest(run).status == Status.QUEUED
    assert [entry.surface for entry in AuditEntry.objects.order_by("id")] == ["link", "link"]
    assert Vote.objects.filter(surface="link").count() == 2


def test_a_reason_that_is_needed_is_told_at_its_field(tmp_path: Path, people: People) -> None:
    _, key = to_pause(a_sign(tmp_path, "require_reason: always"))
    reader = Reader(link_of(key, people.approver))
    answer = reader.press("approve")
    page = answer.content.decode()
    assert answer.status_code == 400
    assert 'id="reason-error">A reason is needed here' in page
    assert 'aria-invalid="true"' in page
    assert still_waits(key)
    assert reader.press("approve", reason="as agreed").status_code == 302


def test_answers_that_do_not_fit_are_told_field_by_field_and_stay(tmp_path: Path, people: People) -> None:
    _, key = to_pause(answering(tmp_path))
    reader = Reader(link_of(key, people.approver))
    answer = reader.press("approve", **LEAST | {"answers.amount": "much", "answers.copies": "-3"})
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Nothing was decided: the answers need another look" in page
    assert page.count('class="k-wrong"') == 2
    assert 'value="much"' in page
    assert '<a href="#answers-amount">' in page
    assert still_waits(key)
    assert reader.press("approve", **LEAST).status_code == 302
    assert json.loads(AuditEntry.objects.get().answers) == LEAST_ANSWERS


def test_a_rejection_needs_no_answers(tmp_path: Path, people: People) -> None:
    _, key = to_pause(answering(tmp_path))
    assert Reader(link_of(key, people.approver)).press("reject").status_code == 302


def test_an_old_page_is_refused_and_shows_what_would_run_now(tmp_path: Path, people: People) -> None:
    _, key = to_pause(a_pay(tmp_path, ""))
    reader = Reader(link_of(key, people.approver))
    answer = reader.press("approve", digest="1:" + "0" * 64)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "The action is not the one that you were shown. Nothing was changed." in page
    assert hidden(page, "digest") == ApprovalRequest.objects.get(key=key).digest
    assert still_waits(key)
    assert reader.press("approve", digest=None).status_code == 409, "no digest is not the right one"


def test_what_somebody_changed_stands_beside_what_was_asked_first(tmp_path: Path, people: People) -> None:
    policy = "approvers: {four_eyes: true}, editable: [action.body.json.amount]"
    paid = f"approval: {{{policy}}}, body: {{json: {{amount: 120}}}}"
    _, key = to_pause(written(tmp_path, text_of("{step: sign, type: tool, tool: pay}", pay=paid)))
    edit_request(key, edits={"action.body.json.amount": 99}, actor=acting(member("as<b>ha")), reason="less")
    reader = Reader(link_of(key, people.approver))
    page = words_of(reader.text)
    assert "Changed by as<b>ha since it was asked action.body.json.amount was 120 is now 99" in page
    assert reader.press("approve").status_code == 302
    assert AuditEntry.objects.get(act="decide").actor == "approver"


def test_a_changed_spec_lets_nobody_approve(waiting: Waiting, people: People, asking: SpecFile) -> None:
    asking.path.write_text(asking.path.read_text().replace("Pay what is due.", "Pay more."))
    reader = Reader(link_of(waiting[1], people.approver))
    assert "The spec changed." in reader.text
    assert reader.press("approve").status_code == 409
    assert reader.press("reject").status_code == 302


def test_who_comes_second_is_told_who_decided(waiting: Waiting, people: People) -> None:
    reader = Reader(link_of(waiting[1], people.approver))
    sent = reader.filled("approve")
    services.decide(waiting[1], approved=False, reason="no", actor=acting(member("asha"), "admin"))
    answer = reader.send(sent)
    page = answer.content.decode()
    assert answer.status_code == 404
    assert "Too late, this request is over: rejected by asha on" in page
    assert "There is nothing left to do." in page
    assert 'name="verdict"' not in page
    assert AuditEntry.objects.count() == 1


def test_the_same_link_decides_one_request_and_not_the_next(waiting: Waiting, people: People) -> None:
    run, key = waiting
    reader = Reader(link_of(key, people.approver))
    sent = reader.filled("approve")
    reader.send(sent)
    work()
    assert newest(run).status == Status.AWAITING
    assert reader.send(sent).status_code == 404
    assert newest(run).status == Status.AWAITING
    assert still_waits(key_of(newest(run)))


def test_a_long_action_is_clipped_and_all_of_it_is_had_by_pressing_not_by_reading(
    asking: SpecFile, people: People
) -> None:
    run = begin(asking, input="long " * 6000)
    work()
    key = key_of(run)
    reader = Reader(link_of(key, people.approver))
    page = reader.text
    assert "You see a part of it:</strong> clipped, 20,000 of 30," in page
    assert not Look.objects.exists()
    sent = {"csrfmiddlewaretoken": hidden(page, "csrfmiddlewaretoken"), "verdict": "whole"}
    answer = reader.send(sent)
    assert answer["Content-Disposition"] == 'attachment; filename="request.json"'
    assert json.loads(answer.content)["message"].count("long") == 6000
    assert "You opened all of it." in reader.text
    assert still_waits(key)
    reader.press("approve")
    assert json.loads(AuditEntry.objects.get().details) == {"clipped": True, "opened": True}


@override_settings(SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"))
def test_behind_a_tls_proxy_the_form_is_taken(waiting: Waiting, people: People) -> None:
    reader = Reader(link_of(waiting[1], people.approver))
    outside = {"Host": "testserver", "X-Forwarded-Proto": "https", "Origin": "https://testserver"}
    answer = reader.client.post(reader.link, reader.filled("approve"), headers=outside)
    assert answer.status_code == 302
