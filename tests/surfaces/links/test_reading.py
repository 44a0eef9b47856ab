"""Opening a signed link shows and changes nothing, whoever opens it; a link that is no good tells nothing."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals import expiry
from approvals.models import ApprovalRequest, AuditEntry, Look, Vote
from approvals.services import decide
from approvals.signedlinks import TELLS_SECONDS, token_for
from statestore.models import StateRecord
from tests.conftest import Clock, People
from tests.counts import count
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import scenes
from tests.surfaces.links.conftest import Reader, link_of
from tests.workbench import ASKING, PAYING_ANSWERS, acting, to_pause, write_spec
from workflows.models import Run, RunEvent
from workflows.registry import SpecFile
from workflows.runs import cancel_run

Waiting = tuple[Run, str]

pytestmark = pytest.mark.django_db(transaction=True)

#: Those who open what stands in a mail before its reader does.
ROBOTS = (
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Mozilla/5.0 (compatible; Microsoft Office 365 SafeLinks)",
    "GoogleImageProxy",
    "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) facebookexternalhit/1.1 Facebot Twitterbot/1.0",
    "BarracudaCentral/1.0",
    "curl/8.14.1",
)
AHEAD: tuple[dict[str, str], ...] = (
    {"Sec-Purpose": "prefetch;prerender"},
    {"Purpose": "prefetch"},
    {"X-Moz": "prefetch"},
)


def everything() -> list[Any]:
    """All rows that a decision, a look or a session would change."""
    tables = (ApprovalRequest, AuditEntry, Vote, Look, StateRecord, Run, RunEvent)
    found = [list(table.objects.order_by("pk").values()) for table in tables]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_session")
        return [*found, cursor.fetchone()]


def test_robots_open_it_many_times_and_nothing_has_happened(waiting: Waiting, people: People) -> None:
    link, before = link_of(waiting[1], people.approver), everything()
    for agent in ROBOTS:
        for _ in range(count(2, 10)):
            for method in ("get", "head", "options"):
                answer = getattr(Client(headers={"User-Agent": agent}), method)(link)
                assert answer.status_code == 200
                assert set(answer.cookies) <= {"csrftoken"}
    for headers in AHEAD:
        assert Client(headers=headers).get(f"{link}?verdict=approve&confirm=yes").status_code == 200
    assert everything() == before
    page = Client().get(link).content.decode()
    assert "Go on with go?" in page
    assert 'name="verdict" value="approve"' in page
    assert Reader(link).press("approve").status_code == 302, "it is still good"


def test_reading_writes_nothing_at_all(waiting: Waiting, people: People) -> None:
    link = link_of(waiting[1], people.approver)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert Client().get(link).status_code == 200
    written = [one["sql"] for one in captured if not one["sql"].lstrip().upper().startswith(("SELECT", "PRAGMA"))]
    assert written == []


def test_it_can_be_neither_put_nor_deleted(waiting: Waiting, people: People) -> None:
    link, before = link_of(waiting[1], people.approver), everything()
    for method in ("put", "patch", "delete", "trace"):
        assert getattr(Client(), method)(link).status_code == 405
    assert everything() == before


def test_the_page_is_kept_nowhere_and_tells_its_address_to_nobody(waiting: Waiting, people: People) -> None:
    link = link_of(waiting[1], people.approver)
    for address in (link, f"{link}x"):
        answer = Client().get(address)
        assert answer["Cache-Control"] == "no-store"
        assert answer["Referrer-Policy"] == "strict-origin", (
            "only the origin, so that browsers say where a form is from"
        )
        assert answer["X-Robots-Tag"] == "noindex, nofollow, noarchive"
        assert answer["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'; ")
        assert answer["X-Frame-Options"] == "DENY"
        page = answer.content.decode()
        assert "<script" not in page
        assert "//" not in page.replace("<!DOCTYPE", "").split("<main>")[0], "nothing is asked of another host"


def test_the_link_stands_in_no_log(
    waiting: Waiting, people: People, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    link = link_of(waiting[1], people.approver)
    token = link.rsplit("/", 1)[1]
    with caplog.at_level(logging.DEBUG):
        for client in (Client(), Client(enforce_csrf_checks=True)):
            client.get(link)
            client.get(f"{link}x")
            client.post(link, {"verdict": "approve", "confirm": "yes"})
            client.delete(link)
    mine = [one for one in caplog.records if one.name.partition(".")[2] != "db.backends"]
    assert [one for one in mine if token in one.getMessage() and not _hidden(one)] == []
    assert token not in capfd.readouterr().err


def _hidden(record: logging.LogRecord) -> bool:
    """Whether the project's handler would write the line without the token."""
    from kampong.security import HideLinks

    HideLinks().filter(record)
    return "/approvals/link/..." in record.getMessage()


def test_a_changed_link_is_like_one_that_never_was(waiting: Waiting, people: People) -> None:
    link = link_of(waiting[1], people.approver)
    start, _, token = link.rpartition("/")
    content, _, signature = token.rpartition(":")
    told = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))

    def signed_as(**changes: Any) -> str:
        text = base64.urlsafe_b64encode(json.dumps(told | changes, separators=(",", ":")).encode()).decode().rstrip("=")
        return f"{text}:{signature}"

    mine = signing.Signer(salt="kampong.approvals.link")
    altered = [
        signed_as(user=people.stranger.pk),
        signed_as(key="0" * 32),
        signed_as(until=told["until"] + 1000),
        signed_as(mailbox="0" * 16),
        f"{content}:{signature[:-1]}{'A' if signature[-1] != 'A' else 'B'}",
        f"{content}:",
        content,
        f"{content[:-2]}:{signature}",
        f"A{content}:{signature}",
        signing.Signer(salt="another").sign_object(told),
        signing.Signer(key="k" * 50, salt="kampong.approvals.link").sign_object(told),
        mine.sign_object(told | {"for": "something else"}),
        mine.sign_object(told | {"key": "0" * 32}),
        mine.sign_object(told | {"user": 10**12}),
        "x" * 3000,
    ]
    pages = {Client().get(f"{start}/{one}").content for one in altered}
    assert {Client().get(f"{start}/{one}").status_code for one in altered} == {404}
    assert {
        Client().post(f"{start}/{one}", {"verdict": "approve", "confirm": "yes"}).status_code for one in altered
    } == {404}
    assert len(pages) == 1
    page = pages.pop().decode()
    assert "This link leads nowhere" in page
    assert 'href="/admin/approvals/approvalrequest/">Sign in' in page
    assert Client().get(link).status_code == 200


def test_after_the_requests_time_it_says_so_for_a_while_and_then_leads_nowhere(
    waiting: Waiting, people: People, clock: Clock
) -> None:
    link = link_of(waiting[1], people.approver)
    clock.advance(7 * 86400 - 60)
    assert 'name="verdict"' in Client().get(link).content.decode()
    clock.advance(120)
    for _ in range(2):
        page = Client().get(link).content.decode()
        assert "This request is over: expired on" in page
        assert 'name="verdict"' not in page
        expiry.expire_due()
    answer = Client().post(link, {"verdict": "approve", "confirm": "yes"})
    assert answer.status_code == 404
    assert "Too late, this request is over: expired" in answer.content.decode()
    clock.advance(TELLS_SECONDS)
    answer = Client().get(link)
    assert answer.status_code == 404
    assert "This link leads nowhere" in answer.content.decode()


def test_it_dies_with_the_address_it_was_sent_to(waiting: Waiting, people: People) -> None:
    link = link_of(waiting[1], people.approver)
    User.objects.filter(pk=people.approver.pk).update(email="APPROVER@example.org")
    assert Client().get(link).status_code == 200
    User.objects.filter(pk=people.approver.pk).update(email="somebody.else@example.org")
    assert Client().get(link).status_code == 404


def test_a_request_that_is_over_says_what_became_of_it_and_shows_no_content(
    asking: SpecFile, people: People, waiting: Waiting
) -> None:
    rejected = link_of(waiting[1], people.approver)
    decide(waiting[1], approved=False, reason="no", actor=acting(people.approver, "api"))
    run, key = to_pause(asking)
    cancelled = link_of(key, people.approver)
    cancel_run(run, actor=acting(people.operator), reason="not needed")
    for link, ending in ((rejected, "rejected by approver on"), (cancelled, "cancelled by operator on")):
        answer = Client().get(link)
        page = answer.content.decode()
        assert answer.status_code == 200
        assert f"This request is over: {ending}" in page
        assert 'name="verdict"' not in page


def test_a_call_that_waits_shows_what_is_sent_and_no_secret(
    tmp_path: Path, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools(PAYING_ANSWERS) as tools:
        _, key = to_pause(scenes.paying(tmp_path, tools.url), input="invoice 7")
        page = Reader(link_of(key, people.approver)).text
    assert f"Sends POST to {tools.url.removeprefix('http://')} with the tool “pay”" in page
    for text in ("invoice 7", "Bearer ${PAY_TOKEN}", "What the run knows so far", "look", "6 days 23 hours"):
        assert text in page
    assert "tok-canary" not in page


HOSTILE = "</blockquote><script>alert(1)</script><img src=x onerror=alert(2)>'\"{{ 7|add:7 }} safe\u202e.exe"


def test_text_of_others_stays_text(tmp_path: Path, people: People) -> None:
    User.objects.filter(pk=people.approver.pk).update(first_name="<script>alert(5)</script>")
    spec = write_spec(tmp_path, ASKING.replace("Go on with {{{{ input }}}}?", "{{{{ input }}}}"))
    _, key = to_pause(spec, input=HOSTILE)
    reader = Reader(link_of(key, people.approver))
    pages = [reader.text, reader.press("approve", reason="<script>", confirm=None).content.decode()]
    reader.press("approve", reason=HOSTILE)
    pages.append(reader.text)
    for page in pages:
        assert "<script" not in page
        assert "<img" not in page
        assert "\u202e" not in page
        assert "{{ 7|add:7 }}" in page
    assert "\\u202e" in pages[0]
    assert "&lt;script&gt;alert(5)" in pages[0]


def test_a_token_holds_no_address_and_fits_in_a_line_of_a_mail(waiting: Waiting, people: People) -> None:
    token = token_for(ApprovalRequest.objects.get(key=waiting[1]), people.approver)
    content = token.partition(":")[0]
    told = base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)).decode()
    assert "example.org" not in told
    assert len(token) < 300
