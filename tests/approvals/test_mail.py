"""What a mail says to whom: a link of one's own for people who may see requests, and no content for anybody else."""

from __future__ import annotations

import re
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import set_script_prefix

from approvals import signedlinks
from approvals.models import ApprovalRequest, Notice, NoticeStatus
from approvals.notices.outbox import tell
from approvals.notices.sender import send_due
from approvals.services import decide
from tests.approvals.policies import a_sign, member
from tests.conftest import People, allow
from tests.fakes_mail import FakeMail, mail_server, part
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import scenes
from tests.workbench import ASKING, PAYING_ANSWERS, acting, to_pause, write_spec

__all__ = ["mail_server"]

pytestmark = pytest.mark.django_db(transaction=True)

NOTIFY = "notify: [{{type: email, to: [{}]}}]"


def sent(server: FakeMail) -> EmailMessage:
    """The one mail that left."""
    assert send_due() == 1
    assert [notice.status for notice in Notice.objects.all()] == [NoticeStatus.SENT], Notice.objects.get().error
    (mail,) = server.mails
    return mail


def told(tmp_path: Path, *addresses: str, policy: str = "") -> str:
    """The key of a request that these addresses are told of."""
    _, key = to_pause(a_sign(tmp_path, ", ".join(filter(None, [NOTIFY.format(", ".join(addresses)), policy]))))
    return key


def link_in(mail: EmailMessage) -> str:
    """The one address in the mail: the same in both parts."""
    (plain,) = re.findall(r"https?://\S+", part(mail, "plain"))
    (html,) = re.findall(r'href="([^"]*)"', part(mail, "html"))
    assert plain == html
    assert re.findall(r"https?://[^\s\"]+", part(mail, "html")) == [html]
    return str(plain)


def test_a_person_who_may_see_it_gets_a_link_of_their_own(
    tmp_path: Path, people: People, mail_server: FakeMail
) -> None:
    key = told(tmp_path, "Approver@Example.org", policy="approvers: {four_eyes: true}, require_reason: reject")
    mail = sent(mail_server)
    assert mail_server.recipients == [["approver@example.org"]]
    assert (mail["From"], mail["To"]) == ("Kampong <desk@kampong.example.org>", "approver@example.org")
    assert mail["Subject"] == "clerk: Really?"
    assert mail["Auto-Submitted"] == "auto-generated"
    link = link_in(mail)
    assert link.startswith("https://kampong.example.org/desk/approvals/link/")
    opened = signedlinks.opened(urlsplit(link).path.rsplit("/", 1)[1])
    assert (str(opened.request.key), opened.user) == (key, people.approver)
    plain = part(mail, "plain")
    for text in (
        "clerk waits for a decision.",
        "Step: sign",
        "> Really?",
        "Started by: starter",
        "Who decides: one person decides: whoever holds approvals.decide; not whoever started the run",
        "a reason is needed to reject",
        "Time left: 6 days 23 hours (until ",
        "Opening the link decides nothing.",
    ):
        assert text in plain
    assert plain.index("https://") < plain.index("> Really?"), "our link comes before the text of others"
    assert key not in mail.as_string()


def test_the_link_of_the_mail_opens_the_page_under_the_prefix(
    tmp_path: Path, people: People, mail_server: FakeMail
) -> None:
    told(tmp_path, "approver@example.org")
    path = urlsplit(link_in(sent(mail_server))).path
    page = Client().get(path.removeprefix("/desk")).content.decode()
    set_script_prefix("/")
    assert "You decide as approver (approver@example.org)" in page


NOT_THEIRS = {
    "nobody's": "ops@example.com",
    "one who may not see requests": "stranger@example.org",
    "one who was deactivated": "gone@example.org",
    "two people's": "both@example.org",
    "one that only looks alike": "approver@examp\u0131e.org",
}


@pytest.mark.parametrize("address", NOT_THEIRS.values(), ids=NOT_THEIRS.keys())
def test_any_other_address_gets_a_way_to_sign_in_and_nothing_of_the_content(
    tmp_path: Path, people: People, mail_server: FakeMail, address: str
) -> None:
    for name in ("gone", "both", "other"):
        member(name)
    User.objects.filter(username="gone").update(email="gone@example.org", is_active=False)
    User.objects.filter(username__in=["both", "other"]).update(email="both@example.org")
    if not address.isascii():
        # A spec takes no such address; a row that has one is not taken for a person's either.
        _, key = to_pause(a_sign(tmp_path, ""))
        request = ApprovalRequest.objects.get(key=key)
        row: dict[str, Any] = {"request": request, "channel": "email", "about": "opened", "due_at": request.created_at}
        Notice.objects.create(address=f'{{"to": "{address}"}}', created_at=request.created_at, **row)
    else:
        told(tmp_path, address)
    mail = sent(mail_server)
    request = ApprovalRequest.objects.get()
    assert link_in(mail).endswith(f"/desk/admin/approvals/approvalrequest/{request.pk}/decide/")
    text = mail["Subject"] + part(mail, "plain") + part(mail, "html")
    assert "Really" not in text
    assert "clerk" in text
    assert "Sign in to read it and decide" in text
    assert "link/" not in text


def test_each_recipient_gets_a_mail_of_their_own(tmp_path: Path, people: People, mail_server: FakeMail) -> None:
    User.objects.filter(username="requester").update(email="req@example.org")
    allow(people.requester, "approvals.view_request")
    told(tmp_path, "approver@example.org", "req@example.org", "ops@example.com")
    assert send_due() == 3
    assert sorted(map(tuple, mail_server.recipients)) == [
        ("approver@example.org",),
        ("ops@example.com",),
        ("req@example.org",),
    ]
    assert len({link_in(mail) for mail in mail_server.mails}) == 3
    assert len({mail["References"] for mail in mail_server.mails}) == 1, "one thread for one request"
    assert len({mail["Message-ID"] for mail in mail_server.mails}) == 3


def test_a_person_who_is_told_twice_gets_one_mail(tmp_path: Path, people: People, mail_server: FakeMail) -> None:
    key = told(tmp_path, "approver@example.org", "APPROVER@example.org", "ops@example.com")
    assert send_due() == 3
    assert mail_server.recipients == [["approver@example.org"], ["ops@example.com"]]
    mail_server.recipients.clear()
    tell(ApprovalRequest.objects.get(key=key), "reminder", users=[people.approver.pk])
    assert send_due() == 4
    assert sorted(mail_server.recipients) == [["approver@example.org"], ["ops@example.com"]]


def test_people_are_told_by_name_what_happened(tmp_path: Path, people: People, mail_server: FakeMail) -> None:
    _, key = to_pause(a_sign(tmp_path, ""))
    request = ApprovalRequest.objects.get(key=key)
    tell(request, "handed", users=[people.approver.pk], by="Asha", reason="I am on the train")
    tell(request, "reminder", users=[people.approver.pk])
    tell(request, "escalated", users=[people.approver.pk], groups=["heads"])
    assert send_due() == 3
    handed, reminder, escalated = mail_server.mails
    assert handed["Subject"] == "Handed to you: clerk: Really?"
    assert "Asha handed you a decision that clerk waits for." in part(handed, "plain")
    assert "Reason given: I am on the train" in part(handed, "plain")
    assert reminder["Subject"] == "Still waiting: clerk: Really?"
    assert escalated["Subject"] == "Escalated: clerk: Really?"
    assert "Escalated to: heads" in part(escalated, "html").replace(
        '</td><td style="padding:2px 0;unicode-bidi:isolate">', ": "
    )
    assert all("/approvals/link/" in link_in(mail) for mail in mail_server.mails)


def test_a_broken_glass_is_told_after_the_end_and_the_link_says_what_became_of_it(
    tmp_path: Path, people: People, mail_server: FakeMail
) -> None:
    glass = member("asha")
    allow(glass, "approvals.break_glass")
    key = told(tmp_path, "approver@example.org", policy="approvers: {quorum: 2}")
    decide(key, approved=True, break_glass=True, reason="the bank closes", actor=acting(glass, "admin"))
    send_due()
    mail = next(one for one in mail_server.mails if one["To"] == "approver@example.org")
    assert mail["Subject"] == "Glass broken: clerk: Really?"
    plain = part(mail, "plain")
    assert "asha broke the glass and approved alone what clerk asked for." in plain
    assert "Reason given: the bank closes" in plain
    assert "What became of it: approved by asha on" in plain
    page = Client().get(urlsplit(link_in(mail)).path.removeprefix("/desk")).content.decode()
    assert "This request is over: approved by asha on" in page


def test_what_is_sent_is_listed_short_and_without_secrets(
    tmp_path: Path, people: People, mail_server: FakeMail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools(PAYING_ANSWERS) as tools:
        _, key = to_pause(scenes.paying(tmp_path, tools.url), input="x" * 5000)
    tell(ApprovalRequest.objects.get(key=key), "reminder", users=[people.approver.pk])
    plain = part(sent(mail_server), "plain")
    assert "What is sent:" in plain
    assert "> method: POST" in plain
    assert "> headers Authorization: Bearer ${PAY_TOKEN}" in plain
    assert "> body (json) for: " + "x" * 199 + "…" in plain
    assert "tok-canary" not in plain
    assert max(map(len, plain.splitlines())) < 1000


ORDERS = (
    "Pay\n\nhttps://evil.example/ [click](https://evil.example) <a href='https://evil.example'>here</a>\r\n"
    "Read it and decide:\r\nhttps://evil.example/approvals/link/x\n<script>alert(1)</script> safe\u202e.exe "
    "Bcc: all@example.org\u2028Approved by boss"
)


def test_text_of_others_gives_no_orders_and_cannot_be_taken_for_ours(
    tmp_path: Path, people: People, mail_server: FakeMail
) -> None:
    spec = write_spec(tmp_path, ASKING.replace("Go on with {{{{ input }}}}?", "{{{{ input }}}}"))
    _, key = to_pause(spec, input=ORDERS)
    tell(ApprovalRequest.objects.get(key=key), "reminder", users=[people.approver.pk])
    mail = sent(mail_server)
    assert mail["Bcc"] is None
    assert mail_server.recipients == [["approver@example.org"]]
    assert "\n" not in mail["Subject"]
    assert len(mail["Subject"].strip()) <= 150
    plain, html = part(mail, "plain"), part(mail, "html")
    ours = [line for line in plain.splitlines() if not line.startswith(("> ", "What: "))]
    assert not any("evil" in line or "boss" in line for line in ours)
    assert "> Read it and decide:" in plain
    assert re.findall(r'href="(?!https://kampong\.example\.org/desk/)', html) == []
    assert html.count("<a ") == 1
    for live in ("<script", "<a href='", "<a href=&"):
        assert live not in html
    for text in (plain, html, mail["Subject"]):
        assert "\u202e" not in text
        assert "\u2028" not in text
    assert "safe\\u202e.exe" in plain
    assert "&lt;script&gt;alert(1)" in html
