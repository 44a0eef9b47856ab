"""Whoever is told may answer at once, and a channel that hangs holds nothing up (scenarios 7 and 23)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.db import connections
from django.test import Client
from pytest_django import Settings

from approvals.models import ApprovalRequest, AuditEntry, Notice
from approvals.notices import sender
from approvals.slack_links import account, link
from tests.approvals.policies import a_sign, written
from tests.conftest import Clock, People
from tests.fakes_mail import FakeMail, part
from tests.fakes_slack import SECRET, TEAM, FakeSlack, Member
from tests.fakes_tools import Answer
from tests.served import until
from tests.surfaces.links.conftest import Reader
from tests.surfaces.slack.conftest import CHANNEL, TEXT
from tests.workbench import acting, begin, work
from workflows.models import Run, Status
from workflows.runs import newest
from workflows.worker import WorkerPool

pytestmark = pytest.mark.django_db(transaction=True)

POST = "POST https://slack.com/api/chat.postMessage"
ONE_GATE = TEXT.replace("CHANNEL", CHANNEL).replace("POLICY", "").replace("    - {step: last, type: approval}\n", "")


class HastySlack(FakeSlack):
    """Somebody presses Approve before the channel's answer to the post is out."""

    member: Member

    def answer(self, method: str, target: str, headers: tuple[tuple[str, str], ...], body: bytes) -> Answer:
        answer = super().answer(method, target, headers, body)
        if self.requests[-1].url.endswith("chat.postMessage"):
            try:
                assert self.member.press(self.posts[-1]).status_code == 200
            finally:
                connections.close_all()
        return answer


class HastyMail(FakeMail):
    """Somebody opens the link and presses before the server has taken the mail."""

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        said = await super().handle_DATA(server, session, envelope)
        await asyncio.to_thread(self._press, part(self.mails[-1], "plain"))
        return said

    def _press(self, text: str) -> None:
        try:
            (path,) = re.findall(r"https?://[^/]+/desk(/approvals/link/\S+)", text)
            assert Reader(path).press("approve").status_code == 302
        finally:
            connections.close_all()


@pytest.fixture
def hasty_slack(monkeypatch: pytest.MonkeyPatch, settings: Settings, people: People) -> Iterator[HastySlack]:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    monkeypatch.setenv("SLACK_SIGNING_SECRET", SECRET)
    link(account(TEAM, "U1", "approver"), people.approver, actor=acting(people.approver))
    with HastySlack() as fake:
        fake.member = Member(slack=fake, id="U1")
        settings.KAMPONG_SLACK_API_URL = fake.api_url
        yield fake


@pytest.fixture
def hasty_mail(settings: Settings) -> Iterator[HastyMail]:
    server = HastyMail()
    server.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", server.port, 20
    settings.EMAIL_HOST_USER = ""
    settings.KAMPONG_BASE_URL = "https://kampong.example.org/desk"
    yield server
    server.stop()


def told() -> list[tuple[str, str]]:
    return list(Notice.objects.order_by("id").values_list("about", "status"))


def decided_at_once(run: Run, surface: str) -> None:
    """The key was good the first time, and the run goes on as after any other approval."""
    entry = AuditEntry.objects.get(act="decide")
    assert (entry.outcome, entry.surface, entry.actor) == ("approved", surface, "approver")
    assert Run.objects.filter(resumed_from=run).count() == 1
    work()
    assert newest(run).status == Status.COMPLETED


def test_a_click_that_comes_before_the_posts_own_answer_decides(hasty_slack: HastySlack, tmp_path: Path) -> None:
    """Scenario 7, in Slack: and the card that is just being posted is brought up to date afterwards."""
    run = begin(written(tmp_path, ONE_GATE))
    work()
    assert hasty_slack.requests == [], "nobody is told before the pause is there"
    sender.send_due()
    decided_at_once(run, "slack")
    until(lambda: len(hasty_slack.replies) == 1)
    assert "Approved by approver" in hasty_slack.replies[0]["text"]
    until(lambda: sender.send_due() >= 0 and told() == [("opened", "sent"), ("closed", "sent")])
    assert "Approved by approver" in hasty_slack.updates[-1]["text"]
    assert hasty_slack.updates[-1]["ts"] == "1.1"


def test_a_link_that_is_opened_before_the_mail_was_taken_decides(
    hasty_mail: HastyMail, people: People, tmp_path: Path
) -> None:
    """Scenario 7, by mail."""
    run = begin(a_sign(tmp_path, "notify: [{type: email, to: [approver@example.org]}]"))
    work()
    assert hasty_mail.mails == []
    sender.send_due()
    entry = AuditEntry.objects.get(act="decide")
    assert (entry.outcome, entry.surface, entry.actor) == ("approved", "link", "approver")
    assert Run.objects.filter(resumed_from=run).count() == 1
    assert told() == [("opened", "sent")]


def test_a_channel_that_hangs_and_fails_starts_no_clock_and_holds_up_no_end(
    slack: FakeSlack, people: People, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario 23: the lifetime counts from the pause, and the end comes while the notice still hangs."""
    slack.script[POST] = [
        {"hang": 3.5, "status": 500, "text": "no"},
        {"json": {"ok": True, "channel": "C1", "ts": "1"}},
    ]
    text = TEXT.replace("CHANNEL", CHANNEL).replace("POLICY", ", expires_in: 1s")
    pool = WorkerPool(1)
    pool.start()
    try:
        run = begin(written(tmp_path, text))
        until(lambda: newest(run).status == Status.EXPIRED, 30)
        request = ApprovalRequest.objects.get(run=run)
        assert 1 <= (request.expires_at - request.created_at).total_seconds() < 1.5
        assert Notice.objects.get(about="opened").error == "", "it was still under way"
        until(lambda: Notice.objects.get(about="opened").error, 30)
    finally:
        assert pool.stop(20) == ()
    failed = Notice.objects.get(about="opened")
    assert (failed.status, failed.attempts) == ("waiting", 1)
    assert caplog.text.count("did not leave") == 1
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.actor) == ("expire", "expiry")
    browser = Client()
    people.approver.is_superuser = True
    people.approver.save()
    browser.force_login(people.approver)
    assert "Slack is not well" in browser.get("/admin/approvals/notice/").content.decode()


def test_a_notice_that_failed_is_sent_when_it_is_tried_again_and_the_run_still_waits(
    slack: FakeSlack, tmp_path: Path, clock: Clock
) -> None:
    """Scenario 23, where the lifetime is longer than the trouble."""
    slack.script[POST] = [{"status": 500, "text": "no"}, {"json": {"ok": True, "channel": "C1", "ts": "1"}}]
    run = begin(written(tmp_path, ONE_GATE))
    work()
    sender.send_due()
    assert told() == [("opened", "waiting")]
    clock.advance(sender.PAUSES[0] + 1)
    sender.send_due()
    assert told() == [("opened", "sent")]
    assert newest(run).status == Status.AWAITING
