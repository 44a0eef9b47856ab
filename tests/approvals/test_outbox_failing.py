"""A dead, a busy and a broken Slack; senders that are many, late or lost (scenarios 23, 26, 48)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django import Settings

from approvals.models import Notice, NoticeStatus
from approvals.notices import sender
from approvals.services import decide
from tests.conftest import Clock, People
from tests.fakes_slack import FakeSlack
from tests.surfaces.slack.conftest import asking
from tests.workbench import acting, to_pause
from workflows.models import Run, Status

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


def test_a_dead_slack_touches_no_run_and_is_tried_again_with_pauses(
    slack: FakeSlack, tmp_path: Path, people: People, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    slack.script[POST] = {"error": "gone"}
    run, key = to_pause(asking(tmp_path))
    for attempt in range(1, sender.MOST_ATTEMPTS + 1):
        sender.send_due()
        notice = Notice.objects.get(about="opened")
        assert notice.attempts == attempt
        clock.advance(sender.PAUSES[min(attempt, len(sender.PAUSES)) - 1] + 1)
    assert notice.status == "failed"
    assert "Slack could not be asked" in notice.error
    run.refresh_from_db()
    assert run.status == Status.AWAITING
    assert len(slack.requests) == sender.MOST_ATTEMPTS
    assert len([one for one in caplog.records if one.name == "kampong.notices"]) == 1
    decide(key, approved=True, actor=acting(people.approver))
    sender.send_due()
    assert told()[-1] == ("closed", "dropped")
    assert len(slack.requests) == sender.MOST_ATTEMPTS


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        ({"status": 500, "text": "no"}, "waiting", "Slack is not well"),
        ({"status": 503, "json": {"ok": False}}, "waiting", "Slack is not well: HTTP 503,"),
        ({"text": "not JSON"}, "waiting", "Slack is not well"),
        ({"json": [1]}, "waiting", "Slack could not be asked"),
        ({"json": None}, "waiting", "Slack is not well"),
        ({"json": {"ok": False, "error": "internal_error"}}, "waiting", "Slack is not well: internal_error"),
        ({"json": {"ok": False, "error": "invalid_auth"}}, "failed", "Slack refused it: invalid_auth"),
        ({"json": {"ok": False, "error": "channel_not_found"}}, "failed", "Slack refused it: channel_not_found"),
        ({"status": 404, "text": "nothing"}, "failed", "Slack refused it"),
    ],
)
def test_what_slack_says_decides_whether_it_is_tried_again(
    answer: dict[str, Any], status: str, error: str, slack: FakeSlack, tmp_path: Path
) -> None:
    slack.script[POST] = answer
    to_pause(asking(tmp_path))
    sender.send_due()
    notice = Notice.objects.get()
    assert (notice.status, notice.held_until) == (status, None)
    assert notice.error.startswith(error)
    assert len(slack.requests) == 1  # no hidden retry


def test_a_busy_slack_is_given_the_time_that_it_asks_for(slack: FakeSlack, tmp_path: Path, clock: Clock) -> None:
    slack.script[POST] = [
        {"status": 429, "headers": {"Retry-After": "90"}, "json": {"ok": False, "error": "ratelimited"}},
        {"json": {"ok": True, "channel": "C1", "ts": "5.5"}},
        {"json": {"ok": True, "channel": "C1", "ts": "6.6"}},
    ]
    spec = asking(tmp_path)
    to_pause(spec)
    to_pause(spec)
    assert sender.send_due() == 0
    clock.advance(60)
    assert sender.send_due() == 0
    assert len(slack.requests) == 1  # the other one waits as well: it goes to the same channel
    clock.advance(40)
    assert sender.send_due() == 2


def test_a_token_that_is_not_set_is_named(slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLACK_BOT_TOKEN")
    to_pause(asking(tmp_path))
    sender.send_due()
    notice = Notice.objects.get()
    assert notice.status == "failed"
    assert "SLACK_BOT_TOKEN" in notice.error
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    assert sender.try_again(notice.pk)
    assert not sender.try_again(notice.pk)
    assert sender.send_due() == 1
    assert len(slack.posts) == 1


def test_a_card_that_cannot_be_changed_any_more_is_told_once_and_the_decision_stands(
    slack: FakeSlack, tmp_path: Path, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    slack.script[UPDATE] = {"json": {"ok": False, "error": "is_archived"}}
    _, key = to_pause(asking(tmp_path))
    sender.send_due()
    outcome = decide(key, approved=True, actor=acting(people.approver))
    for _ in range(3):
        sender.send_due()
    assert told()[-1] == ("closed", "failed")
    assert len(slack.updates) == 1
    assert caplog.text.count("is_archived") == 1
    assert Run.objects.get(pk=outcome.run.pk).status == Status.QUEUED


def test_two_senders_never_send_one_notice_twice(slack: FakeSlack, tmp_path: Path) -> None:
    spec = asking(tmp_path)
    for _ in range(12):
        to_pause(spec)
    done: list[int] = []

    def send() -> None:
        try:
            done.append(sender.send_due())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(done) == 12
    assert len(slack.posts) == 12


def test_a_notice_whose_sender_is_lost_again_and_again_is_given_up(
    slack: FakeSlack, tmp_path: Path, clock: Clock
) -> None:
    to_pause(asking(tmp_path))
    for _ in range(sender.MOST_ATTEMPTS):
        assert sender._take(*(sender._next(set()) or (0, 0))) is not None
        clock.advance(sender.HOLD_SECONDS + 1)
    sender.send_due()
    assert told() == [("opened", "failed")]
    assert slack.requests == []


def test_a_late_sender_marks_nothing(
    slack: FakeSlack, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    to_pause(asking(tmp_path))
    late = sender._take(*(sender._next(set()) or (0, 0)))
    assert late is not None
    clock.advance(sender.HOLD_SECONDS + 1)
    assert sender.send_due() == 1
    with caplog.at_level(logging.WARNING):
        sender._mark(late, status=NoticeStatus.FAILED, error="too late")
    assert told() == [("opened", "sent")]
    assert "took longer than its hold" in caplog.text
