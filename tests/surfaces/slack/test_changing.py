"""The card follows a request: edits, escalation, taking back; a click on an older card decides nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from approvals.editing import edit_request
from approvals.models import ApprovalRequest, AuditEntry
from approvals.notices import sender
from approvals.rebinding import rebind
from approvals.recall import withdraw
from approvals.reminding import escalate_due, remind_due
from approvals.services import decide
from tests.approvals.policies import member, written
from tests.conftest import Clock, People, allow
from tests.fakes_slack import everything
from tests.surfaces.slack.conftest import CHANNEL, Channel, asking
from tests.workbench import HEAD, acting
from workflows.models import Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


def a_payment(folder: Path, policy: str) -> SpecFile:
    """The call of a tool whose amount can be changed, announced in the channel."""
    text = (
        HEAD.replace('"1.1"', '"1.2"').format(agent_id="clerk")
        + f"""\
  approval_notifier: {CHANNEL}
  tools:
    - name: pay
      action: http_request
      method: POST
      url: "http://127.0.0.1:9/pay"
      approval: {{editable: [action.body.json.amount], {policy}}}
      body: {{json: {{amount: 120}}}}
  workflow:
    - {{step: pay, type: tool, tool: pay}}
"""
    )
    return written(folder, text)


def sections(card: dict[str, Any]) -> list[str]:
    return [block["text"]["text"] for block in card["blocks"] if block["type"] == "section"]


def block_id(card: dict[str, Any]) -> str:
    return str(next(block["block_id"] for block in card["blocks"] if block["type"] == "actions"))


@pytest.mark.parametrize("also", ["", ", require_reason: always"])
def test_an_edit_redraws_the_card_and_the_old_one_decides_nothing(
    also: str, channel: Channel, tmp_path: Path, people: People
) -> None:
    asha = member("asha")
    run, key, card = channel.card(a_payment(tmp_path, f"approvers: {{four_eyes: true}}{also}"))
    assert "Open the page to change values before approving" in everything(card)
    edited = edit_request(key, edits={"action.body.json.amount": 99}, actor=acting(asha), reason="less")
    sender.send_due()
    fresh = channel.slack.updates[-1]
    assert "amount: 120" in everything(card)
    assert "amount: 99" in everything(fresh)
    assert "Changed by asha since it was asked:\naction.body.json.amount: 120 → 99" in sections(fresh)
    assert "Changed by" not in everything(card)
    assert block_id(fresh) == f"kampong:{edited.digest}" != block_id(card)
    channel.approver.press(card)
    told, replaced = channel.replies(2)
    assert "not what this card showed" in told["text"]
    assert "amount: 99" in everything(replaced)
    assert channel.slack.views == []
    run.refresh_from_db()
    assert run.status == Status.AWAITING
    if not also:
        channel.approver.press(fresh)
        channel.replies(3)
        assert newest(run).status == Status.QUEUED
        assert AuditEntry.objects.get(act="decide").digest == edited.digest


def test_an_approval_that_was_taken_back_shows_on_its_card_and_asks_again(
    channel: Channel, tmp_path: Path, people: People
) -> None:
    _, key, card = channel.card(asking(tmp_path, "recall: 10m"))
    channel.approver.press(card)
    assert "it can be taken back until" in everything(channel.replies()[0])
    withdraw(key, actor=acting(people.approver), reason="a mistake")
    sender.send_due()
    assert "Withdrawn by approver" in channel.slack.updates[-1]["text"]
    again = channel.slack.posts[-1]
    assert again != card
    assert str(ApprovalRequest.objects.get(status="open").key) in everything(again)
    why = "This is asked again: the approval by approver was withdrawn by approver: a mistake."
    assert why in sections(again)
    assert not [text for text in sections(card) if "asked again" in text]


def test_a_request_that_was_bound_to_a_changed_spec_shows_what_it_was(channel: Channel, tmp_path: Path) -> None:
    spec = a_payment(tmp_path, "require_reason: never")
    _, key, card = channel.card(spec)
    spec.path.write_text(spec.path.read_text().replace("amount: 120", "amount: 130"))
    rebind(key, actor=acting(allow(member("rita"), "approvals.rebind")), reason="the new price")
    sender.send_due()
    told = "Bound to a changed spec by rita: the spec changed, and what is asked is not what was shown."
    fresh = channel.slack.updates[-1]
    assert f"{told}\nWhat was shown before:\nbody (json) amount: 120" in sections(fresh)
    assert "body (json) amount: 130" in "\n".join(sections(fresh))
    assert block_id(fresh) != block_id(card)


def test_an_escalation_and_a_reminder_are_said_below_the_card(channel: Channel, tmp_path: Path, clock: Clock) -> None:
    member("finn", "finance")
    member("cleo", "chiefs")
    policy = "approvers: {groups: [finance]}, remind_every: 1h, escalate: {after: 2h, groups: [chiefs]}"
    channel.card(asking(tmp_path, policy))
    clock.advance(3700)
    remind_due()
    sender.send_due()
    assert "still waits" in channel.slack.posts[-1]["text"]
    clock.advance(3600)
    escalate_due()
    sender.send_due()
    assert "chiefs may decide it as well" in channel.slack.posts[-1]["text"]
    assert channel.slack.posts[-1]["thread_ts"] == "1.1"


def test_a_broken_glass_is_said_in_the_channel(channel: Channel, tmp_path: Path) -> None:
    root = member("root", superuser=True)
    _, key, _ = channel.card(asking(tmp_path, "approvers: {quorum: 2}"))
    decide(key, approved=True, actor=acting(root), reason="fire", break_glass=True)
    sender.send_due()
    assert "root broke the glass" in channel.slack.posts[-1]["text"]
    assert "Approved by root" in channel.slack.updates[-1]["text"]
