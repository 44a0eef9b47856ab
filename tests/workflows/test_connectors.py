"""Messages in stored runs: approved once, sent once, and their token nowhere in the database (engine semantics 15)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from approvals.queue import detail
from approvals.services import decide
from tests.canary.searching import Seen
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.workbench import HEAD, acting, begin, key_of, to_pause, work, write_spec
from workflows.models import Attempt, Run, Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "xoxb-canary-1"
SLACK = "POST https://slack.com/api/chat.postMessage"
GMAIL = "POST https://gmail.googleapis.com/gmail/v1/users/me/messages/send"
SPEC = (
    HEAD
    + """\
  tools:
    - name: tell
      action: slack_post_message
      requires_approval: true
      token: "${{CHAT_TOKEN}}"
      channel: "#ops"
      text: "Pay {{{{ input }}}}?"
    - name: write
      action: component
      use: kampong/gmail@1.0.0
      op: send
      requires_approval: {asks}
      with: {{to: bo@example.org, subject: Told, body: "{{{{ tell.ts }}}}"}}
      secrets: {{token: "${{MAIL_TOKEN}}"}}
    - {{name: foreign, action: component, use: acme/mailer@1.4.0, op: send, requires_approval: true}}
  workflow:
    - {{step: tell, type: tool, tool: {first}}}
    - {{step: write, type: tool, tool: write}}
"""
)


@pytest.fixture
def services(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("CHAT_TOKEN", TOKEN)
    monkeypatch.setenv("MAIL_TOKEN", TOKEN)
    with FakeTools({SLACK: {"json": {"ok": True, "ts": "17.5"}}, GMAIL: {"json": {"id": "m1"}}}) as server:
        settings.KAMPONG_SLACK_API_URL = server.mounted("https://slack.com") + "/api"
        settings.KAMPONG_GMAIL_API_URL = server.mounted("https://gmail.googleapis.com")
        yield server


def waiting(folder: Path, *, asks: str = "false", input: str = "118") -> tuple[Run, str]:
    return to_pause(write_spec(folder, SPEC, first="tell", asks=asks), input=input)


def test_an_approved_message_is_sent_once_and_the_next_asks_by_itself(
    services: FakeTools, people: People, tmp_path: Path
) -> None:
    run, key = waiting(tmp_path, asks="true")
    approver = acting(people.approver)
    shown = detail(key, approver)
    assert shown["action"] == {
        "action": "slack_post_message",
        "tool": "tell",
        "channel": "#ops",
        "text": "Pay 118?",
        "token": "${CHAT_TOKEN}",
    }
    assert services.requests == []
    decide(key, approved=True, digest=shown["digest"], actor=approver)
    work()
    second = key_of(newest(run))
    action = detail(second, approver)["action"]
    assert action["use"] == "kampong/gmail@1.0.0"
    assert action["with"] == {"to": "bo@example.org", "subject": "Told", "body": "17.5"}
    decide(second, approved=True, actor=approver)
    work()
    assert newest(run).status == Status.COMPLETED
    assert [f"{request.method} {request.url}" for request in services.requests] == [SLACK, GMAIL]
    assert [attempt.name for attempt in Attempt.objects.order_by("id")] == ["tell", "write"]
    seen = Seen()
    seen.keep_tables()
    assert seen.places_of([TOKEN]) == []


def test_a_rejected_message_is_not_sent(services: FakeTools, people: People, tmp_path: Path) -> None:
    run, key = waiting(tmp_path)
    decide(key, approved=False, reason="not now", actor=acting(people.approver))
    work()
    assert newest(run).status == Status.REJECTED
    assert services.requests == []


def test_what_slack_refuses_fails_the_run_and_keeps_no_token(
    services: FakeTools, people: People, tmp_path: Path
) -> None:
    services.script[SLACK] = {"json": {"ok": False, "error": f"invalid_auth {TOKEN}"}}
    run, key = waiting(tmp_path)
    decide(key, approved=True, actor=acting(people.approver))
    work()
    failed = newest(run)
    assert failed.status == Status.FAILED
    assert "invalid_auth [REDACTED]" in (failed.error or "")
    seen = Seen()
    seen.keep_tables()
    assert seen.places_of([TOKEN]) == []


def test_a_token_that_is_gone_fails_after_the_approval_by_its_name(
    services: FakeTools, people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, key = waiting(tmp_path)
    monkeypatch.delenv("CHAT_TOKEN")
    decide(key, approved=True, actor=acting(people.approver))
    work()
    failed = newest(run)
    assert failed.status == Status.FAILED
    assert "CHAT_TOKEN is not set" in (failed.error or "")
    assert services.requests == []


def test_a_component_that_is_not_there_fails_before_anybody_is_asked(services: FakeTools, tmp_path: Path) -> None:
    run = begin(write_spec(tmp_path, SPEC, first="foreign", asks="false"))
    work()
    run.refresh_from_db()
    assert run.status == Status.FAILED
    assert "acme/mailer@1.4.0" in (run.error or "")
    assert services.requests == []


def test_the_input_is_data_to_the_last_byte(services: FakeTools, people: People, tmp_path: Path) -> None:
    hostile = "${CHAT_TOKEN} {{ input }} <!channel> \u202e é"
    _, key = waiting(tmp_path, input=hostile)
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert json.loads(services.requests[0].body)["text"] == f"Pay {hostile}?"
