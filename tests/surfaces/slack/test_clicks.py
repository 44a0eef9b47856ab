"""A click decides once, is answered so that everybody sees it, and is answered again when it came too late."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from approvals import expiry
from approvals.models import ApprovalRequest, AuditEntry
from approvals.notices import sender
from approvals.services import decide
from tests.approvals.policies import member
from tests.conftest import Clock, People
from tests.fakes_slack import Member, everything, form, send
from tests.surfaces.slack.conftest import Channel, asking
from tests.workbench import acting
from workflows.models import Status
from workflows.runs import cancel_run, newest

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_click_approves_as_the_linked_user_and_replaces_the_card(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path))
    answer = channel.approver.press(card)
    assert (answer.status_code, answer.content) == (200, b"")
    assert newest(run).status == Status.QUEUED
    (reply,) = channel.replies()
    assert reply["replace_original"] is True
    assert reply["text"].startswith("Approved by approver on ")
    assert "kampong_approve" not in everything(reply)
    entry = AuditEntry.objects.get(act="decide")
    assert (entry.actor, entry.surface, entry.actor_detail, entry.reason) == ("approver", "slack", "T1/U1", "")
    assert entry.digest_sent


def test_a_click_rejects_without_a_reason(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path))
    assert channel.approver.press(card, "kampong_reject").status_code == 200
    assert newest(run).status == Status.REJECTED
    assert channel.replies()[0]["text"].startswith("Rejected by approver on ")


def test_the_card_itself_is_changed_from_the_outbox(channel: Channel, tmp_path: Path) -> None:
    _, _, card = channel.card(asking(tmp_path))
    channel.approver.press(card)
    assert sender.send_due() >= 1
    (update,) = channel.slack.updates
    assert (update["channel"], update["ts"]) == ("C1", "1.1")
    assert "Approved by approver" in update["text"]
    assert "actions" not in [block["type"] for block in update["blocks"]]


def test_the_same_click_again_is_told_who_decided(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path))
    for _ in range(3):
        assert channel.approver.press(card).status_code == 200
    _, second, *_ = channel.replies(5)
    assert "Too late" in everything(channel.replies(5))
    assert second["replace_original"] is False or "Approved by" in everything(second)
    assert AuditEntry.objects.filter(act="decide").count() == 1
    assert newest(run).status == Status.QUEUED


def test_a_decision_in_the_admin_changes_the_card(channel: Channel, tmp_path: Path, people: People) -> None:
    _, key, _ = channel.card(asking(tmp_path))
    decide(key, approved=False, reason="no", actor=acting(people.approver, "admin"))
    sender.send_due()
    (update,) = channel.slack.updates
    assert "Rejected by approver" in update["text"]
    assert "(admin)" in update["text"]


def test_an_expired_card_loses_its_buttons_and_a_click_is_told(channel: Channel, tmp_path: Path, clock: Clock) -> None:
    _, _, card = channel.card(asking(tmp_path, "expires_in: 1h"))
    clock.advance(3700)
    assert channel.approver.press(card).status_code == 200
    told, replaced = channel.replies(2)
    assert "expired on" in told["text"]
    assert replaced["replace_original"] is True
    assert "kampong_approve" not in everything(replaced)
    expiry.expire_due()
    sender.send_due()
    assert "Expired" in channel.slack.updates[-1]["text"]


def test_a_cancelled_card_says_by_whom(channel: Channel, tmp_path: Path, people: People) -> None:
    run, _, card = channel.card(asking(tmp_path))
    cancel_run(run, actor=acting(people.operator, "admin"), reason="not needed")
    sender.send_due()
    assert "Cancelled by operator" in channel.slack.updates[-1]["text"]
    channel.approver.press(card)
    told, replaced = channel.replies(2)
    assert "cancelled by operator" in told["text"]
    assert "Cancelled by operator" in replaced["text"]


def test_who_may_not_decide_is_told_alone_and_learns_nothing_of_the_key(
    channel: Channel, tmp_path: Path, people: People
) -> None:
    run, key, card = channel.card(asking(tmp_path))
    assert channel.stranger.press(card).status_code == 200
    decide(key, approved=True, actor=acting(people.approver))
    assert channel.stranger.press(card).status_code == 200
    first, second = channel.replies(2)
    assert first == second
    assert (first["response_type"], first["replace_original"]) == ("ephemeral", False)
    assert "approvals.decide is needed" in first["text"]
    assert newest(run).status == Status.QUEUED


def test_the_spec_narrows_who_may_decide_in_slack_too(channel: Channel, tmp_path: Path) -> None:
    member("finn", "finance")
    run, _, card = channel.card(asking(tmp_path, "approvers: {groups: [finance]}"))
    channel.approver.press(card)
    assert "members of finance" in channel.replies()[0]["text"]
    run.refresh_from_db()
    assert run.status == Status.AWAITING


def test_an_account_that_is_not_linked_is_told_how(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path))
    assert channel.visitor.press(card).status_code == 200
    (reply,) = channel.replies()
    assert reply["response_type"] == "ephemeral"
    assert "not linked" in reply["text"]
    assert "<https://kampong.example.org/desk/slack/link/" in everything(reply)
    run.refresh_from_db()
    assert run.status == Status.AWAITING


@pytest.mark.parametrize("whose", [{"team_id": "T2"}, {"team_id": "T2", "username": "approver"}])
def test_somebody_of_another_workspace_with_the_same_id_is_somebody_else(
    whose: dict[str, Any], channel: Channel, tmp_path: Path
) -> None:
    """In a channel that two Slack workspaces share: the button is in ours, and whoever presses it is of the other."""
    run, _, card = channel.card(asking(tmp_path))
    foreign = Member(slack=channel.slack, id="U1", extra={"user": {"id": "U1", **whose}})
    assert foreign.press(card).status_code == 200
    (reply,) = channel.replies()
    assert "not linked" in reply["text"]
    run.refresh_from_db()
    assert run.status == Status.AWAITING


@pytest.mark.parametrize(
    "places",
    [
        {"user": {"id": "U1"}},
        {"user": {"id": "U1", "team_id": None}},
        {"team": None},
        {"team": {"id": "T2"}},
        {"team": None, "user": {"id": "U1"}, "enterprise": {"id": "T1"}},
    ],
)
def test_a_person_is_known_wherever_the_team_is_named(places: dict[str, Any], channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path))
    Member(slack=channel.slack, id="U1", extra=places).press(card)
    assert newest(run).status == Status.QUEUED


def test_without_a_base_url_an_administrator_links(channel: Channel, tmp_path: Path, settings: Settings) -> None:
    settings.KAMPONG_BASE_URL = ""
    _, _, card = channel.card(asking(tmp_path))
    channel.visitor.press(card)
    assert "slack_link USER T1/U9" in channel.replies()[0]["text"]


def test_a_deactivated_user_decides_nothing_through_slack(channel: Channel, tmp_path: Path, people: People) -> None:
    run, _, card = channel.card(asking(tmp_path))
    people.approver.is_active = False
    people.approver.save()
    channel.approver.press(card)
    assert "You may not decide" in channel.replies()[0]["text"]
    run.refresh_from_db()
    assert run.status == Status.AWAITING


def test_a_vote_shows_on_the_card_and_the_second_one_decides(channel: Channel, tmp_path: Path) -> None:
    asha, bo = (channel.linked(member(name, "finance"), f"U{name}") for name in ("asha", "bo"))
    run, _, card = channel.card(asking(tmp_path, "approvers: {groups: [finance], quorum: 2}"))
    asha.press(card)
    replaced, told = channel.replies(2)
    assert "approved by 1 of 2: asha" in everything(replaced)
    assert "1 more person must approve" in told["text"]
    sender.send_due()
    assert "approved by 1 of 2: asha" in everything(channel.slack.updates[-1])
    asha.press(card)
    assert "you approved this already" in channel.replies(3)[-1]["text"]
    bo.press(card)
    channel.replies(4)
    assert newest(run).status == Status.QUEUED


def test_two_accounts_of_one_user_count_once(channel: Channel, tmp_path: Path) -> None:
    person = member("asha", "finance")
    member("bo", "finance")
    one, other = channel.linked(person, "Uone"), channel.linked(person, "Uother")
    run, _, card = channel.card(asking(tmp_path, "approvers: {groups: [finance], quorum: 2}"))
    one.press(card)
    other.press(card)
    channel.replies(3)
    run.refresh_from_db()
    assert run.status == Status.AWAITING


def test_whoever_started_the_run_may_reject_in_slack_and_not_approve(channel: Channel, tmp_path: Path) -> None:
    ben = member("ben")
    run, _, card = channel.card(asking(tmp_path, "approvers: {four_eyes: true}"), actor=acting(ben))
    pressing = channel.linked(ben, "Uben")
    pressing.press(card)
    assert "four eyes" in channel.replies()[0]["text"]
    pressing.press(card, "kampong_reject")
    channel.replies(2)
    assert newest(run).status == Status.REJECTED


def test_a_click_on_what_changed_since_decides_nothing(channel: Channel, tmp_path: Path) -> None:
    run, key, card = channel.card(asking(tmp_path))
    card["blocks"][-1]["block_id"] = "kampong:1:" + "0" * 64
    channel.approver.press(card)
    told, replaced = channel.replies(2)
    assert "not what this card showed" in told["text"]
    assert ApprovalRequest.objects.get(key=key).digest in everything(replaced)
    run.refresh_from_db()
    assert run.status == Status.AWAITING


def test_a_changed_spec_is_refused_and_rejecting_still_works(channel: Channel, tmp_path: Path) -> None:
    spec = asking(tmp_path)
    run, _, card = channel.card(spec)
    spec.path.write_text(spec.text.replace("Really", "Truly"), encoding="utf-8")
    os.utime(spec.path)
    channel.approver.press(card)
    assert "the spec changed" in channel.replies()[0]["text"]
    channel.approver.press(card, "kampong_reject")
    channel.replies(2)
    assert newest(run).status == Status.REJECTED


def test_a_card_that_proves_nothing_of_what_it_shows_decides_nothing_where_that_is_needed(
    channel: Channel, tmp_path: Path
) -> None:
    run, _, card = channel.card(asking(tmp_path, "digest: required"))
    payload = channel.approver.payload(card, "kampong_approve")
    payload["actions"][0].pop("block_id")
    assert send(form(payload)).status_code == 200
    assert "this request needs the digest" in channel.replies()[0]["text"]
    run.refresh_from_db()
    assert run.status == Status.AWAITING
    channel.approver.press(card)
    channel.replies(2)
    assert newest(run).status == Status.QUEUED
