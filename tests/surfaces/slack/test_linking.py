"""An account decides as a user after that user said so, signed in here; the audit keeps it (scenarios 42, 49)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from approvals.models import AuditEntry, SlackUser
from approvals.slack_links import account, token_for
from kampong.security import HideLinks
from tests.conftest import People, allow
from tests.fakes_slack import everything
from tests.surfaces.cli.running import command
from tests.surfaces.slack.conftest import Channel, asking
from workflows.models import Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

BASE = "https://kampong.example.org/desk"


def link_in(reply: dict[str, Any]) -> str:
    """The path of the page, under this test's own host."""
    said = everything(reply)
    start = said.index(f"<{BASE}/slack/link/") + len(BASE) + 1
    return said[start : said.index("|", start)]


@pytest.fixture
def signed_in(people: People, client: Client) -> Client:
    client.force_login(people.operator)
    return client


def test_a_visitor_links_and_then_decides(channel: Channel, tmp_path: Path, people: People, client: Client) -> None:
    run, _, card = channel.card(asking(tmp_path))
    channel.visitor.press(card)
    path = link_in(channel.replies()[0])
    answer: Any = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/sign-in?next=/slack/link/")
    client.force_login(people.approver)
    page: Any = client.get(path)
    for part in ("vis", "T1/U9", "approver", "approves and rejects in your name"):
        assert part in page.content.decode()
    assert not SlackUser.objects.filter(slack_id="U9").exists()
    client.post(path)
    linked = SlackUser.objects.get(slack_id="U9")
    assert (linked.team, linked.name, linked.user) == ("T1", "vis", people.approver)
    entry = AuditEntry.objects.filter(act="link").latest("id")
    assert (entry.actor, entry.surface) == ("approver", "admin")
    assert json.loads(entry.details)["slackId"] == "U9"
    channel.visitor.press(card)
    channel.replies(2)
    assert newest(run).status == Status.QUEUED


def test_reading_the_page_links_nothing_however_often(channel: Channel, signed_in: Client) -> None:
    path = f"/slack/link/{token_for(account('T1', 'U9', 'vis'))}"
    for method in ("get", "head", "options"):
        getattr(signed_in, method)(path)
    assert not SlackUser.objects.filter(slack_id="U9").exists()


def test_linking_again_replaces_and_says_so(channel: Channel, signed_in: Client, people: People) -> None:
    path = f"/slack/link/{token_for(account('T1', 'U1', 'ash'))}"
    page: Any = signed_in.get(path)
    assert "Until now it decided as <strong>approver</strong>" in page.content.decode()
    signed_in.post(path)
    assert SlackUser.objects.get(slack_id="U1").user == people.operator
    assert SlackUser.objects.filter(slack_id="U1").count() == 1


@pytest.mark.parametrize("spoil", [lambda token: token[:-1] + ("a" if token[-1] != "a" else "b"), lambda token: "x"])
def test_an_altered_link_is_refused(spoil: Callable[[str], str], channel: Channel, signed_in: Client) -> None:
    answer: Any = signed_in.post(f"/slack/link/{spoil(token_for(account('T1', 'U9')))}")
    assert answer.status_code == 400
    assert "not one of ours" in answer.content.decode()
    assert not SlackUser.objects.filter(slack_id="U9").exists()


def test_a_link_is_good_for_fifteen_minutes(
    channel: Channel, signed_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/slack/link/{token_for(account('T1', 'U9'))}"
    present = time.time()
    monkeypatch.setattr("django.core.signing.time.time", lambda: present + 901)
    answer: Any = signed_in.post(path)
    assert answer.status_code == 400
    assert "15 minutes" in answer.content.decode()
    assert not SlackUser.objects.filter(slack_id="U9").exists()


def test_a_post_without_the_forms_own_token_links_nothing_and_the_link_is_in_no_log(
    channel: Channel, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(people.operator)
    token = token_for(account("T1", "U9"))
    assert strict.post(f"/slack/link/{token}").status_code == 403
    (told,) = [record for record in caplog.records if "/slack/link/" in record.getMessage()]
    HideLinks().filter(told)  # as the handler of the project's own logging does
    assert "/slack/link/..." in told.getMessage()
    assert token not in told.getMessage()
    assert not SlackUser.objects.filter(slack_id="U9").exists()


def test_an_account_with_markup_in_its_name_is_shown_as_text(channel: Channel, signed_in: Client) -> None:
    page: Any = signed_in.get(f"/slack/link/{token_for(account('T1', 'U9', '<script>x</script>'))}")
    assert "<script>x" not in page.content.decode()


def test_an_administrator_links_by_command(people: People) -> None:
    done = command("slack_link", "approver", "T9/U9", "--name", "ash")
    assert (done.code, done.err) == (0, "")
    assert SlackUser.objects.get(team="T9", slack_id="U9").user == people.approver
    assert AuditEntry.objects.get(act="link").surface == "cli"
    assert command("slack_link", "nobody", "T9/U9").code == 2
    assert command("slack_link", "approver", "nonsense").code == 64


def test_the_admin_lists_accounts_and_takes_a_link_away(channel: Channel, people: People, client: Client) -> None:
    client.force_login(allow(people.operator, "approvals.view_slackuser"))
    linked = SlackUser.objects.get(slack_id="U1")
    listed: Any = client.get("/admin/approvals/slackuser/")
    assert "U1" in listed.content.decode()
    gone = f"/admin/approvals/slackuser/{linked.pk}/delete/"
    assert client.post(gone, {"post": "yes"}).status_code == 403
    client.force_login(allow(people.operator, "approvals.delete_slackuser"))
    assert client.get(f"/admin/approvals/slackuser/{linked.pk}/change/").status_code == 200
    assert client.post(gone, {"post": "yes"}).status_code == 302
    assert not SlackUser.objects.filter(slack_id="U1").exists()
    entry = AuditEntry.objects.get(act="unlink")
    assert (entry.actor, json.loads(entry.details)["user"]) == ("operator", "approver")


def test_who_is_no_staff_signs_in_and_links_as_well(people: People, client: Client) -> None:
    person = people.approver
    person.is_staff = False
    person.save(update_fields=["is_staff"])
    path = f"/slack/link/{token_for(account('T1', 'U7', 'ash'))}"
    asked: Any = client.get(path, follow=True)
    page = asked.content.decode()
    assert 'autocomplete="current-password"' in page
    fields = {"username": person.username, "next": path}
    wrong: Any = client.post("/sign-in", fields | {"password": "guess"})
    assert "do not fit" in wrong.content.decode()
    told: Any = client.post("/sign-in", fields | {"password": people.password}, follow=True)
    assert told.redirect_chain == [(path, 302)]
    client.post(path)
    assert SlackUser.objects.get(slack_id="U7").user == person
    away: Any = client.post("/sign-in", fields | {"password": people.password, "next": "https://evil.example.org/"})
    assert away["Location"] == "/admin/"
