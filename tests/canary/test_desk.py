"""No secret is anywhere after all that can happen to a request at the desk; no link, token or session in a log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.contrib.auth.models import User

from approvals.models import ApprovalRequest, AuditEntry, Notice
from approvals.tokens import create_token
from tests.approvals.policies import member
from tests.canary import desk
from tests.canary.deskwork import (
    LINK,
    InSlack,
    decide_by_link,
    keep_what_was_sent,
    links_to,
    read,
    see_all_of,
    socket,
)
from tests.canary.journey import NOTE, Journey
from tests.canary.planted import SECRETS
from tests.canary.searching import Seen, crawl
from tests.commanding import Terminal
from tests.conftest import Clock, Processes
from tests.fakes_mail import FakeMail
from tests.fakes_slack import FakeSlack
from tests.fakes_tools import FakeTools
from tests.served import Served, until
from tests.workbench import write_spec
from workflows.models import Run, Status
from workflows.runs import newest

# what is written and said is the same on both
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("postgres")]


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(desk.TOOLS) as server:
        yield server


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(desk.DESK_SLACK) as server:
        yield server


@pytest.fixture
def mail() -> Iterator[FakeMail]:
    server = FakeMail()
    server.password, server.says = desk.MAIL_PASSWORD, desk.MAIL_TELLS
    server.start()
    yield server
    server.stop()


@pytest.fixture
def both(db: None) -> tuple[User, User]:
    """Who starts, and who is told by mail; `dev` is the one to whom it can be handed."""
    lim, bo = (member(name, "payers", superuser=True) for name in ("lim", "bo"))
    member("dev")
    for user in User.objects.all():
        User.objects.filter(pk=user.pk).update(email=f"{user.username}@example.org")
    return lim, bo


@pytest.fixture
def journey(
    tmp_path: Path, tools: FakeTools, slack: FakeSlack, mail: FakeMail, both: tuple[User, User], manage: Processes
) -> Iterator[Journey]:
    """A server and a terminal with the secrets in their environment, logging all they can."""
    folder = tmp_path / "specs"
    folder.mkdir()
    write_spec(folder, desk.SPEC, url=tools.url)
    addresses = {"EMAIL_URL": desk.email_url(mail.port), "KAMPONG_SLACK_API_URL": slack.api_url}
    addresses["KAMPONG_OPENAI_API_URL"] = f"{tools.url}/openai"
    manage.env |= SECRETS | addresses | {"LOG_LEVEL": "DEBUG"}
    terminal = Terminal(manage.env, tmp_path / "terminal")
    journey = Journey(Served(manage, tmp_path, str(folder)), both[0], terminal, slack, Seen())
    yield journey
    journey.end()
    terminal.end()


def told(journey: Journey, mail: FakeMail, clock: Clock) -> ApprovalRequest:
    """A request whose notices fail first, with all that the other side knows, and then arrive."""
    run = journey.start()
    journey.follow(run)
    request = journey.waits(run)
    until(lambda: Notice.objects.exclude(error="").count() == 3)
    journey.browser.get("/admin/approvals/notice/")
    mail.says = "250 taken"
    clock.advance(11)
    until(lambda: len(mail.mails) == 2 and NOTE in str(journey.slack.posts[1:]))
    return request


def changed(journey: Journey, bo: User, mail: FakeMail, request: ApprovalRequest, spec: Path) -> None:
    """Edited by one, bound to a changed spec by the other, who hands it on."""
    edit = {"edits": {"action.body.json.amount": 122}, "reason": "a little more"}
    read(journey.rest.post(f"/approvals/{request.key}/edit", json=edit))
    journey.rest.post(f"/approvals/{request.key}/edit", json={"edits": {"action.headers.Authorization": "x"}})
    spec.write_text(spec.read_text() + desk.ONE_STEP_MORE)
    see_all_of(journey, request)
    assert journey.rest.post(f"/approvals/{request.key}/approve", json={"approved": True}).status_code == 409
    headers = {"Authorization": f"Bearer {create_token(bo, 'canary')}"}
    bound = {"reason": "one step more"}
    with httpx2.Client(base_url=journey.served.url, headers=headers, timeout=60) as client:
        client.event_hooks = {"response": [journey.seen.keep_answer]}
        read(client.post(f"/approvals/{request.key}/rebind", json=bound))
        read(client.post(f"/approvals/{request.key}/delegate", json={"to": "dev", "reason": "away"}))
    see_all_of(journey, request)
    until(lambda: "dev@example.org" in {one["To"] for one in mail.mails})


def taken_back(journey: Journey, request: ApprovalRequest) -> ApprovalRequest:
    """Approved in Slack, withdrawn over REST: open again under a new key."""
    in_slack = InSlack(journey)
    in_slack.link_account()
    in_slack.approve("seen in the channel")
    until(lambda: AuditEntry.objects.filter(act="decide").exists())
    journey.look(newest(request.run))
    read(journey.rest.post(f"/approvals/{request.key}/withdraw", json={"reason": "too early"}))
    return ApprovalRequest.objects.get(reopened_from=request.key)


def goes_on(journey: Journey, run: Run, clock: Clock) -> None:
    """The recall is over: the tool of the decision, a payment that fails, a retry, the end."""
    clock.advance(601)
    journey.retry(journey.failed(run), 0)
    until(lambda: newest(run).status == Status.COMPLETED)
    journey.look(newest(run))


def say_everything(journey: Journey, spec: Path, request: ApprovalRequest) -> None:
    """Every command that tells of it."""
    for words in (
        ("audit", "verify"),
        ("audit", "export"),
        ("audit", "receipt", str(request.key)),
        ("sweep", "--verbosity=2"),
    ):
        journey.command(*words)
    receipt = spec.parent / "receipt.json"
    receipt.write_text([text for place, text in journey.seen.texts if place == "command audit receipt"][-1])
    journey.command("audit", "verify", "--receipt", str(receipt))
    journey.command("doctor", str(spec))
    journey.command("doctor", str(spec), "--json", "--online", "--probe", code=2)
    journey.command("runs", "list", "--as", "lim")


def test_no_secret_is_anywhere_after_all_that_can_happen_to_a_request(
    journey: Journey, tmp_path: Path, tools: FakeTools, mail: FakeMail, clock: Clock, both: tuple[User, User]
) -> None:
    seen, spec = journey.seen, tmp_path / "specs" / "spec.yaml"
    with socket(journey):
        first = told(journey, mail, clock)
        see_all_of(journey, first)
        changed(journey, both[1], mail, first, spec)
        again = taken_back(journey, first)
        clock.advance(3601)
        until(lambda: links_to("lim@example.org", mail))
        journey.browser.get(f"/admin/approvals/approvalrequest/{again.pk}/decide/")
        decide_by_link(journey, links_to("lim@example.org", mail)[0], "seen in the mail")
        goes_on(journey, first.run, clock)
        say_everything(journey, spec, again)
        pages = crawl(journey.browser, "/admin/")
    journey.end()
    keep_what_was_sent(journey, mail)
    assert tools.failures == journey.slack.failures == []
    log = seen.keep("log of serve", journey.served.said()) + seen.keep(
        "log of commands", journey.terminal.log.read_text()
    )
    assert len(pages) > 40, pages
    assert seen.keep_tables() > 1000
    it_was_all_seen(seen, mail, tools)
    assert seen.places_of([*desk.DESK_MARKS, *desk.MAIL_SENT, journey.token]) == []
    assert [str(key) for key in ApprovalRequest.objects.values_list("key", flat=True) if str(key) in log] == []
    links_and_sessions_stay_where_they_belong(journey, mail)


def it_was_all_seen(seen: Seen, mail: FakeMail, tools: FakeTools) -> None:
    """Otherwise the search finds nothing and means nothing."""
    for surface in (
        "table workflows_run.input",
        "table approvals_notice",
        "GET /admin/approvals/approvalrequest",
        "GET /approvals/link/",
        "GET /approvals/",
        "command approvals show",
        "message to Slack",
        "mail",
        "events",
    ):
        wanted = ["slack", "mail"] if surface == "table approvals_notice" else [NOTE]
        assert seen.places_of(wanted, surface), f"the search finds nothing in {surface}"
    assert seen.places_of(["clerk"], "socket")
    assert seen.places_of(["a little more"], "command audit")
    paid = [request for request in tools.requests if request.url.endswith("/pay")]
    assert [request.json()["key"] for request in paid] == [SECRETS["BODY_KEY"]] * 2
    assert {one["To"] for one in mail.mails} == {
        "bo@example.org",
        "outside@elsewhere.example",
        "lim@example.org",
        "dev@example.org",
    }


def links_and_sessions_stay_where_they_belong(journey: Journey, mail: FakeMail) -> None:
    """A link is in its mail and at its own page; a session in the table of sessions and its own cookie."""
    tokens = {
        found
        for place, text in journey.seen.texts
        if place in ("mail", "answer to a click")
        for found in LINK.findall(text)
    }
    assert len(tokens) >= 4
    at_home = ("mail", "answer to a click", "POST /approvals/link/", "GET /slack/link/", "POST /slack/link/")
    assert [place for place in journey.seen.places_of(tokens) if not place.startswith(at_home)] == []
    session = journey.browser.cookies[settings.SESSION_COOKIE_NAME]
    assert [place for place in journey.seen.places_of([session]) if not place.startswith("table django_session")] == []
