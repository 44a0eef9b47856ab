"""What a mail server says decides whether a mail is tried again; a dead one never touches a run."""

from __future__ import annotations

import base64
import socket
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from approvals.models import ApprovalRequest, Notice, NoticeStatus
from approvals.notices.carriers import OutOfDate, TryLater, Undeliverable
from approvals.notices.mail import MailCarrier
from approvals.notices.outbox import tell
from approvals.notices.sender import send_due
from approvals.services import decide
from approvals.signedlinks import token_for
from tests.approvals.policies import a_sign
from tests.conftest import Clock, People
from tests.fakes_mail import FakeMail, mail_server
from tests.workbench import acting, to_pause
from workflows.engine import jsontext
from workflows.models import Status
from workflows.runs import newest

__all__ = ["mail_server"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def notice(tmp_path: Path, people: People) -> Notice:
    """A notice for the approver that waits to leave."""
    _, key = to_pause(a_sign(tmp_path, ""))
    tell(ApprovalRequest.objects.get(key=key), "reminder", users=[people.approver.pk])
    return Notice.objects.select_related("request__run").get()


def refusal(notice: Notice, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        MailCarrier().send(notice)
    return str(caught.value)


def test_an_address_that_is_refused_for_good_is_not_tried_again(notice: Notice, mail_server: FakeMail) -> None:
    mail_server.refuse["approver@example.org"] = "550 5.1.1 no such mailbox"
    assert refusal(notice, Undeliverable) == "the mail server does not take this address: 550 5.1.1 no such mailbox"
    mail_server.refuse["approver@example.org"] = "450 4.2.0 greylisted"
    assert refusal(notice, TryLater) == "the mail server does not take this address: 450 4.2.0 greylisted"


def test_a_mail_that_is_refused_says_why(notice: Notice, mail_server: FakeMail) -> None:
    mail_server.says = "554 5.7.1 looks like spam"
    assert refusal(notice, Undeliverable) == "the mail server does not take this mail: 554 5.7.1 looks like spam"
    mail_server.says = "451 4.3.0 try again"
    assert refusal(notice, TryLater) == "the mail server does not take this mail: 451 4.3.0 try again"


def test_a_server_that_is_not_there_is_tried_again_and_the_run_does_not_mind(
    notice: Notice, people: People, mail_server: FakeMail, clock: Clock
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with override_settings(EMAIL_PORT=closed.getsockname()[1]):
            assert send_due() == 0
            notice.refresh_from_db()
            assert (notice.status, notice.attempts) == (NoticeStatus.WAITING, 1)
            assert notice.error.startswith("the mail server is away: ")
    clock.advance(60)
    assert send_due() == 1
    notice.refresh_from_db()
    assert (notice.status, notice.error) == (NoticeStatus.SENT, "")
    request = ApprovalRequest.objects.get()
    decide(str(request.key), approved=True, actor=acting(people.approver))
    assert newest(request.run).status == Status.QUEUED


def test_a_server_that_says_nothing_holds_nobody_up_for_long(notice: Notice, mail_server: FakeMail) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with override_settings(EMAIL_PORT=silent.getsockname()[1], EMAIL_TIMEOUT=0.2):
            assert "timed out" in refusal(notice, TryLater)


def test_a_mail_that_is_sent_again_after_a_crash_carries_the_same_name(notice: Notice, mail_server: FakeMail) -> None:
    first, second = MailCarrier().send(notice), MailCarrier().send(notice)
    assert first == second
    names = {mail["Message-ID"] for mail in mail_server.mails}
    assert names == {jsontext.loads(first)["messageId"]}
    assert names.pop().endswith("@kampong.example.org>")


def test_what_is_missing_is_named(notice: Notice, mail_server: FakeMail) -> None:
    unset: dict[str, Any] = {"EMAIL_BACKEND": "approvals.notices.mail_unset.NoMailServer"}
    with override_settings(**unset):
        assert "set EMAIL_URL" in refusal(notice, TryLater)
    with override_settings(KAMPONG_BASE_URL=""):
        assert "KAMPONG_BASE_URL is not set" in refusal(notice, TryLater)


def test_a_password_that_is_refused_is_an_operators_to_mend(notice: Notice, mail_server: FakeMail) -> None:
    with override_settings(EMAIL_HOST_USER="desk", EMAIL_HOST_PASSWORD="canary-password"):
        told = refusal(notice, TryLater)
    assert told.startswith("the mail server does not take the user or password of EMAIL_URL: 535")
    assert "canary" not in told
    with override_settings(EMAIL_HOST_USER="desk", EMAIL_HOST_PASSWORD="pässword"):
        assert refusal(notice, TryLater) == (
            "the user or password of EMAIL_URL is not plain ASCII, and no other can be sent"
        )
    with override_settings(EMAIL_USE_TLS=True):
        assert "EMAIL_URL asks for what the server cannot: STARTTLS" in refusal(notice, TryLater)


def test_a_server_that_tells_the_password_or_the_link_tells_nobody_here(
    notice: Notice, mail_server: FakeMail, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    mail_server.password = "canary-password"
    token = token_for(ApprovalRequest.objects.get(), people.approver)
    sent = [base64.b64encode(text.encode()).decode() for text in ("canary-password", "\0desk\0canary-password")]
    told = " ".join([*sent, "canary-password", f"https://kampong.example.org/desk/approvals/link/{token}"])
    with override_settings(EMAIL_HOST_USER="desk", EMAIL_HOST_PASSWORD="canary-password"):
        for says in (f"554 5.7.1 spam: {told}", f"451 4.7.1 later: {told}"):
            mail_server.says = says
            shown = refusal(notice, Exception)
            assert shown.partition("[")[0].endswith(("spam: ", "later: "))
            assert [part for part in (*sent, "canary", token) if part in shown] == []
        mail_server.refuse["approver@example.org"] = f"450 {told}"
        assert "canary" not in refusal(notice, TryLater)
        send_due()
    notice.refresh_from_db()
    assert "canary" not in notice.error + caplog.text
    assert token not in notice.error + caplog.text


def test_a_person_who_is_gone_or_has_no_address_is_not_mailed(notice: Notice, people: People) -> None:
    User.objects.filter(pk=people.approver.pk).update(email="")
    assert refusal(notice, Undeliverable) == "approver has no email address; enter one in the admin"
    User.objects.filter(pk=people.approver.pk).update(email="approver@example.org", is_active=False)
    assert "not active any more" in refusal(notice, OutOfDate)


def test_nobody_is_asked_for_what_is_over(notice: Notice, people: People, mail_server: FakeMail) -> None:
    decide(str(ApprovalRequest.objects.get().key), approved=False, actor=acting(people.approver))
    assert "over before this left" in refusal(notice, OutOfDate)
    assert send_due() == 1
    notice.refresh_from_db()
    assert notice.status == NoticeStatus.DROPPED
    assert mail_server.mails == []
