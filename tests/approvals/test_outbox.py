"""The outbox: written with the act, sent after it, the newest state in the place of what was posted before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from approvals import audit, services
from approvals.models import ApprovalRequest, Notice, NoticeStatus
from approvals.notices import outbox, sender
from approvals.services import decide
from tests.approvals.policies import a_sign
from tests.conftest import Clock, People
from tests.fakes_slack import FakeSlack
from tests.surfaces.slack.conftest import asking
from tests.workbench import ASKING, acting, to_pause, write_spec
from workflows import registry
from workflows.errors import SpecBroken
from workflows.spec.load import load

pytestmark = pytest.mark.django_db(transaction=True)

POST = "POST https://slack.com/api/chat.postMessage"
UPDATE = "POST https://slack.com/api/chat.update"


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[FakeSlack]:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    with FakeSlack() as fake:
        settings.KAMPONG_SLACK_API_URL = fake.api_url
        yield fake


def told() -> list[tuple[str, str]]:
    return list(Notice.objects.order_by("id").values_list("about", "status"))


def let_it_be_due() -> None:
    Notice.objects.filter(status=NoticeStatus.WAITING).update(due_at="2020-01-01T00:00:00Z", held_until=None)


def test_a_pause_writes_its_notice_and_nothing_leaves_before_it_is_sent(slack: FakeSlack, tmp_path: Path) -> None:
    to_pause(asking(tmp_path))
    notice = Notice.objects.get()
    assert (notice.about, notice.channel, notice.status) == ("opened", "slack", "waiting")
    assert json.loads(notice.address) == {"token": "${SLACK_BOT_TOKEN}", "channel": "#approvals"}
    assert slack.requests == []
    assert sender.send_due() == 1
    notice.refresh_from_db()
    assert (notice.status, notice.attempts, json.loads(notice.sent_as)) == ("sent", 1, {"channel": "C1", "ts": "1.1"})
    assert sender.send_due() == 0
    assert len(slack.posts) == 1


def test_without_a_channel_there_is_no_row_and_no_question_for_it(tmp_path: Path, people: People) -> None:
    _, key = to_pause(write_spec(tmp_path, ASKING))
    request = ApprovalRequest.objects.select_related("run").get(key=key)
    outbox.channels_of(request)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        outbox.tell(request, "changed")
    assert len(asked) == 0
    decide(key, approved=False, actor=acting(people.approver))
    assert not Notice.objects.exists()


def test_notify_comes_before_the_notifier_and_may_name_several_places(slack: FakeSlack, tmp_path: Path) -> None:
    notify = (
        'notify: [{type: slack, token: "${SLACK_BOT_TOKEN}", channel: "#one"}, '
        '{type: slack, token: "${SLACK_BOT_TOKEN}", channel: "#two"}, '
        "{type: email, to: [a@example.org, b@example.org]}]"
    )
    request = opened(asking(tmp_path), notify)
    outbox.tell(request, "opened")
    outbox.tell(request, "closed")
    places = [
        (notice.about, notice.channel, json.loads(notice.address).get("channel") or json.loads(notice.address)["to"])
        for notice in Notice.objects.order_by("id")
    ]
    assert places == [
        ("opened", "slack", "#one"),
        ("opened", "slack", "#two"),
        ("opened", "email", "a@example.org"),
        ("opened", "email", "b@example.org"),
        ("closed", "slack", "#one"),
        ("closed", "slack", "#two"),
    ]


def opened(spec: Any, notify: str) -> ApprovalRequest:
    """A request under a policy with these channels, and no notice yet."""
    policy = spec.spec.agent.workflow[0].policy
    text = spec.text.replace("type: approval, message", f"type: approval, {notify}, message")
    loaded = load(text)
    assert loaded.spec is not None, loaded.errors
    held = loaded.spec.agent.workflow[0].policy  # type: ignore[union-attr]
    assert held != policy
    _, key = to_pause(spec)
    Notice.objects.all().delete()
    ApprovalRequest.objects.filter(key=key).update(policy=held.model_dump_json(exclude_defaults=True))
    return ApprovalRequest.objects.select_related("run").get(key=key)


def test_when_the_decision_fails_no_notice_is_left_behind(
    slack: FakeSlack, tmp_path: Path, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = to_pause(asking(tmp_path))
    sender.send_due()

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(audit, "record", broken)
    with pytest.raises(RuntimeError):
        decide(key, approved=True, actor=acting(people.approver))
    assert told() == [("opened", "sent")]


def test_a_request_that_is_over_before_its_card_left_is_not_announced(
    slack: FakeSlack, tmp_path: Path, people: People
) -> None:
    _, key = to_pause(asking(tmp_path))
    decide(key, approved=False, actor=acting(people.approver))
    sender.send_due()
    assert told() == [("opened", "dropped"), ("closed", "dropped")]
    assert slack.requests == []


def test_a_change_while_the_card_still_waits_is_in_the_card(slack: FakeSlack, tmp_path: Path) -> None:
    slack.script[POST] = [{"status": 500}, {"json": {"ok": True, "channel": "C1", "ts": "2.2"}}]
    _, key = to_pause(asking(tmp_path))
    sender.send_due()
    services.changed(ApprovalRequest.objects.get(key=key))
    sender.send_due()
    assert told() == [("opened", "waiting"), ("changed", "dropped")]
    let_it_be_due()
    sender.send_due()
    assert told()[0] == ("opened", "sent")


def test_a_change_waits_while_the_card_is_being_posted_and_is_not_lost(
    slack: FakeSlack, tmp_path: Path, people: People, clock: Clock
) -> None:
    _, key = to_pause(asking(tmp_path))
    held = sender._take(*(sender._next(set()) or (0, 0)))
    assert held is not None
    decide(key, approved=True, actor=acting(people.approver))
    assert sender.send_due() == 0
    assert told() == [("opened", "waiting"), ("closed", "waiting")]
    sender._mark(held, status=NoticeStatus.SENT, sent_as='{"channel":"C1","ts":"3.3"}')
    clock.advance(3)
    assert sender.send_due() == 1
    assert slack.updates[0]["ts"] == "3.3"
    assert "Approved by approver" in slack.updates[0]["text"]


def test_of_several_changes_the_newest_is_sent(slack: FakeSlack, tmp_path: Path) -> None:
    _, key = to_pause(asking(tmp_path))
    sender.send_due()
    for _ in range(3):
        services.changed(ApprovalRequest.objects.get(key=key))
    sender.send_due()
    assert told() == [("opened", "sent"), ("changed", "dropped"), ("changed", "dropped"), ("changed", "sent")]
    assert len(slack.updates) == 1
    assert list(Notice.objects.filter(about="changed").order_by("id").values_list("revision", flat=True)) == [1, 2, 3]


def test_what_happens_meanwhile_is_said_below_the_card(slack: FakeSlack, tmp_path: Path) -> None:
    _, key = to_pause(asking(tmp_path))
    sender.send_due()
    request = ApprovalRequest.objects.get(key=key)
    outbox.tell(request, "reminder")
    outbox.tell(request, "escalated", groups=["chiefs"])
    outbox.tell(request, "handed", by="Asha", reason="away")
    outbox.tell(request, "glass_broken", by="Root", reason="fire <!channel>")
    sender.send_due()
    lines = slack.posts[1:]
    assert [line["thread_ts"] for line in lines] == ["1.1"] * 4
    for line, part in zip(
        lines, ("still waits", "chiefs may decide", "Asha handed this on", "Root broke the glass"), strict=True
    ):
        assert part in line["text"]
        assert line["reply_broadcast"] is True
    assert "&lt;!channel&gt;" in lines[3]["text"]


def test_a_spec_that_no_longer_loads_keeps_nobody_from_deciding(
    slack: FakeSlack, tmp_path: Path, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = to_pause(a_sign(tmp_path, "require_reason: never"))

    def broken(*_: Any) -> None:
        raise SpecBroken("no longer loads", errors=[])

    monkeypatch.setattr(registry, "pinned", broken)
    decide(key, approved=False, actor=acting(people.approver))
    assert not Notice.objects.exists()
