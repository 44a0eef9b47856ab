"""Where a decision needs a reason or answers, the button opens a form; what does not fit goes back to its field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from approvals.models import AuditEntry
from approvals.services import decide
from tests.approvals.policies import member
from tests.conftest import People
from tests.fakes_slack import everything, picked, text
from tests.surfaces.slack.conftest import Channel, asking
from tests.workbench import acting
from workflows.models import Run, Status
from workflows.runs import newest

# what is read and drawn is the same on both
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("postgres")]

FORM = """form: {type: object, required: [amount, speed], properties: {
  amount: {type: integer, minimum: 1, maximum: 500, title: Amount to pay},
  speed: {type: string, enum: [slow, fast]},
  sure: {type: boolean},
  tags: {type: array, items: {type: string, enum: [a, b, c]}},
  to: {type: object, properties: {name: {type: string, maxLength: 5}}},
  note: {type: string, format: multiline}}}"""


def inputs(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {block["block_id"]: block for block in view["blocks"] if block["type"] == "input"}


def waits(run: Run) -> bool:
    run.refresh_from_db()
    return run.status == Status.AWAITING


def test_a_reason_that_is_needed_is_asked_for_in_a_form(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path, "require_reason: always"))
    assert channel.approver.press(card).content == b""
    (view,) = channel.slack.views
    (opened,) = channel.slack.of("views.open")
    assert opened["trigger_id"] == "1.2.3"
    assert waits(run)
    assert (view["type"], inputs(view)["reason"]["optional"]) == ("modal", False)
    answer = channel.approver.submit(view, reason=text("read it"))
    assert (answer.status_code, answer.content) == (200, b"")
    entry = AuditEntry.objects.get(act="decide")
    assert (entry.reason, entry.surface, entry.digest_sent) == ("read it", "slack", True)
    assert channel.replies()[0]["text"].startswith("Approved by approver")


def test_a_rejection_alone_may_need_one(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path, "require_reason: reject"))
    channel.approver.press(card, "kampong_reject")
    (view,) = channel.slack.views
    answer = channel.approver.submit(view, reason=text("   "))
    assert json.loads(answer.content) == {
        "response_action": "errors",
        "errors": {"reason": "a reason is needed here; say in a few words why"},
    }
    assert waits(run)
    channel.approver.submit(view, reason=text("too much"))
    channel.replies()
    assert newest(run).status == Status.REJECTED
    assert AuditEntry.objects.get(act="decide").reason == "too much"


def test_a_form_is_drawn_read_and_kept(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path, FORM))
    channel.approver.press(card)
    (view,) = channel.slack.views
    drawn = inputs(view)
    assert list(drawn) == [
        "answers.amount",
        "answers.speed",
        "answers.sure",
        "answers.tags",
        "answers.to.name",
        "answers.note",
        "reason",
    ]
    assert drawn["answers.amount"]["label"]["text"] == "Amount to pay"
    assert [one["text"]["text"] for one in drawn["answers.speed"]["element"]["options"]] == ["slow", "fast"]
    assert drawn["answers.note"]["element"]["multiline"] is True
    tags = {"type": "multi_static_select", "selected_options": [{"value": "0"}, {"value": "2"}]}
    answer = channel.approver.submit(
        view,
        answers__amount=text("12"),
        answers__speed=picked(1),
        answers__sure={"type": "checkboxes", "selected_options": [{"value": "on"}]},
        answers__tags=tags,
        answers__to__name=text("Kim"),
        answers__note=text("a\nb"),
        reason=text(""),
    )
    assert answer.content == b""
    given = json.loads(AuditEntry.objects.get(act="decide").answers)
    assert given == {
        "amount": 12, "speed": "fast", "sure": True, "tags": ["a", "c"], "to": {"name": "Kim"}, "note": "a\nb"
    }  # fmt: skip
    assert newest(run).status == Status.QUEUED


def test_each_problem_stands_at_its_field_and_nothing_is_consumed(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path, FORM))
    channel.approver.press(card)
    (view,) = channel.slack.views
    answer = channel.approver.submit(view, answers__amount=text("a lot"), answers__speed=picked(7))
    errors = json.loads(answer.content)["errors"]
    assert set(errors) == {"answers.amount", "answers.speed"}
    assert "whole number" in errors["answers.amount"]
    answer = channel.approver.submit(
        view, answers__amount=text("501"), answers__speed=picked(0), answers__to__name=text("far too long")
    )
    errors = json.loads(answer.content)["errors"]
    assert set(errors) == {"answers.amount", "answers.to.name"}
    assert waits(run)
    channel.approver.submit(view, answers__amount=text("5"), answers__speed=picked(0))
    channel.replies()
    assert newest(run).status == Status.QUEUED


NO_OPTIONS: list[Any] = [5, True, "0", {"value": "0"}, [5], [None], [{"value": 0}], [{"value": "9" * 5000}], [{}]]


@pytest.mark.parametrize("options", NO_OPTIONS, ids=lambda options: str(options)[:30])
@pytest.mark.parametrize("kind", ["static_select", "multi_static_select", "checkboxes"])
def test_an_element_of_another_shape_is_no_answer(kind: str, options: Any, channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path, FORM))
    channel.approver.press(card)
    (view,) = channel.slack.views
    one = options[0] if isinstance(options, list) else options
    element = {"type": kind, "selected_options": options, "selected_option": one}
    answer = channel.approver.submit(view, answers__amount=text("x"), answers__speed=element, answers__tags=element)
    assert answer.status_code == 200
    assert "answers.amount" in json.loads(answer.content)["errors"]
    assert waits(run)


def test_a_rejection_asks_for_no_answers(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path, FORM))
    channel.approver.press(card, "kampong_reject")
    channel.replies()
    assert channel.slack.views == []
    assert newest(run).status == Status.REJECTED


def test_who_may_not_decide_gets_no_form(channel: Channel, tmp_path: Path) -> None:
    _, _, card = channel.card(asking(tmp_path, "require_reason: always"))
    channel.stranger.press(card)
    channel.visitor.press(card)
    channel.replies(2)
    assert channel.slack.views == []


def test_a_form_that_was_sent_too_late_says_so_in_its_place(channel: Channel, tmp_path: Path, people: People) -> None:
    _, key, card = channel.card(asking(tmp_path, "require_reason: always"))
    channel.approver.press(card)
    (view,) = channel.slack.views
    decide(key, approved=False, reason="no", actor=acting(people.approver, "admin"))
    answer = json.loads(channel.approver.submit(view, reason=text("yes")).content)
    assert answer["response_action"] == "update"
    assert "rejected by approver" in everything(answer["view"])
    channel.approver.press(card)
    assert len(channel.slack.views) == 1
    assert "Too late" in everything(channel.slack.replies + channel.replies(3))


def test_somebody_else_cannot_send_the_form(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path, "require_reason: always"))
    channel.approver.press(card)
    (view,) = channel.slack.views
    for other in (channel.stranger, channel.visitor):
        answer = json.loads(other.submit(view, reason=text("yes")).content)
        assert answer["response_action"] == "update"
    assert waits(run)


def test_the_form_begins_with_what_the_others_answered(channel: Channel, tmp_path: Path) -> None:
    people = [channel.linked(member(name, "finance"), f"U{name}") for name in ("asha", "bo")]
    policy = f"approvers: {{groups: [finance], quorum: 2}}, {FORM}"
    run, _, card = channel.card(asking(tmp_path, policy))
    people[0].press(card)
    people[0].submit(channel.slack.views[0], answers__amount=text("7"), answers__speed=picked(1))
    people[1].press(card)
    drawn = inputs(channel.slack.views[1])
    assert drawn["answers.amount"]["element"]["initial_value"] == "7"
    assert drawn["answers.speed"]["element"]["initial_option"]["text"]["text"] == "fast"
    people[1].submit(channel.slack.views[1], answers__amount=text("7"), answers__speed=picked(1))
    channel.replies(3)
    assert newest(run).status == Status.QUEUED


def test_a_form_over_slacks_limits_leads_to_the_page(channel: Channel, tmp_path: Path) -> None:
    many = ", ".join(f"f{number}: {{type: string}}" for number in range(120))
    _, _, card = channel.card(asking(tmp_path, f"form: {{type: object, properties: {{{many}}}}}"))
    channel.approver.press(card)
    (reply,) = channel.replies()
    assert "larger than Slack can show" in reply["text"]
    assert "https://kampong.example.org/desk/admin/" in everything(reply)


@pytest.mark.parametrize(
    "said", [{"json": {"ok": False, "error": "expired_trigger_id"}}, {"status": 500}, {"error": "gone"}]
)
def test_a_form_that_cannot_be_opened_is_told(said: dict[str, Any], channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path, "require_reason: always"))
    channel.slack.script["POST https://slack.com/api/views.open"] = said
    channel.approver.press(card)
    assert "could not be opened, and nothing was decided" in channel.replies()[0]["text"]
    assert waits(run)
