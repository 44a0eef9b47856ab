"""Slack, Gmail and component tools against a real server that stands for both services (engine semantics 15, 14.5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes_tools import FakeTools, Recorded
from workflows.adapters.environment import Environment
from workflows.adapters.http import HttpTool
from workflows.adapters.sending import Sender
from workflows.advance import world_for
from workflows.engine.effects import Decision, Pause
from workflows.engine.situation import Situation
from workflows.memory_run import State, decision_for, run_in_memory
from workflows.spec.load import load

TOKEN = "xoxb-canary/+1"
SLACK_URL, GMAIL_URL = (
    "https://slack.com/api/chat.postMessage",
    "https://gmail.googleapis.com/gmail/v1/users/me/messages/send",
)
SLACK, GMAIL = f"POST {SLACK_URL}", f"POST {GMAIL_URL}"
SPEC = """\
version: "1.1"
agent:
  id: herald
  name: Herald
  role: Herald
  goal: Tell people.
  model: {provider: ollama, name: test-model}
  tools:
    - name: tell
      action: slack_post_message
      token: "${SLACK_TOKEN}"
      channel: "#ops"
      text: "{{ trigger.text }}"
      extract: ts
    - name: write
      action: gmail_send
      token: "${GMAIL_TOKEN}"
      to: "{{ trigger.to }}"
      subject: "{{ trigger.subject }}"
      body: b
    - name: part
      action: component
      use: kampong/slack@1.0.0
      op: post_message
      with: {channel: "#ops", text: "{{ trigger.n }}"}
      secrets: {token: "${SLACK_TOKEN}"}
      requires_approval: true
    - {name: foreign, action: component, use: acme/mailer@1.4.0, op: send, requires_approval: true}
  workflow:
    - {step: go, type: tool, tool: NAME}
"""
DATA = {"text": "${SLACK_TOKEN} {{ x }}", "to": "bo@example.org", "subject": "Hello", "n": 3.0}
TOLD = {"json": {"ok": True, "ts": "17.5"}}


@pytest.fixture
def services(settings: Any) -> Iterator[FakeTools]:
    with FakeTools({SLACK: TOLD, GMAIL: {"json": {"id": "m1"}}}) as server:
        settings.KAMPONG_SLACK_API_URL = server.mounted("https://slack.com") + "/api"
        settings.KAMPONG_GMAIL_API_URL = server.mounted("https://gmail.googleapis.com") + "/"
        yield server


def run(tool: str, *, approve: bool = True, env: dict[str, str] | None = None, **data: Any) -> State:
    """One call of this tool. A guard that allows no private address does not keep the operator's own ones away."""
    spec = load(SPEC.replace("NAME", tool)).spec
    assert spec is not None
    tools = HttpTool(Sender(timeout=5, private_addresses=[]))
    environment = Environment({"SLACK_TOKEN": TOKEN, "GMAIL_TOKEN": TOKEN} if env is None else env)
    world = replace(world_for(spec), environment=environment, tools=tools)

    def answer(pause: Pause) -> Decision:
        return decision_for(pause, approved=approve, reason=None, by="test")

    input = json.dumps({**DATA, **data})
    return run_in_memory(spec, Situation(input=input), world, ask=answer, listener=lambda event, state: None)


def error_of(tool: str, **options: Any) -> str:
    state = run(tool, **options)
    assert state["status"] == "failed", state
    assert TOKEN not in json.dumps(state)
    return str(state["error"])


def only(services: FakeTools) -> Recorded:
    (request,) = services.requests
    return request


def test_a_message_arrives_at_slack_and_extract_picks_from_the_answer(services: FakeTools) -> None:
    assert run("tell")["finalOutput"] == {"go": "17.5"}
    request = only(services)
    assert (request.method, request.url) == ("POST", SLACK_URL)
    assert request.header("Authorization") == f"Bearer {TOKEN}"
    assert request.header("Content-Type") == "application/json; charset=utf-8"
    assert request.body == b'{"channel":"#ops","text":"${SLACK_TOKEN} {{ x }}"}'


def test_a_mail_arrives_at_gmail(services: FakeTools) -> None:
    assert run("write")["finalOutput"] == {"go": {"id": "m1"}}
    request = only(services)
    assert (request.method, request.url) == ("POST", GMAIL_URL)
    assert request.header("Authorization") == f"Bearer {TOKEN}"
    assert request.header("Content-Type") == "application/json"
    assert list(request.json()) == ["raw"]


def test_a_component_does_the_same_after_its_approval(services: FakeTools) -> None:
    assert run("part", approve=False)["status"] == "rejected"
    assert services.requests == []
    assert run("part")["finalOutput"] == {"go": TOLD["json"]}
    assert only(services).json() == {"channel": "#ops", "text": "3"}


def test_an_unknown_component_is_named_with_those_there_are(services: FakeTools) -> None:
    error = error_of("foreign")
    assert all(words in error for words in ('"foreign"', "acme/mailer@1.4.0", "kampong/slack@1.0.0"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"json": {"ok": False, "error": "channel_not_found"}}, "channel_not_found"),
        ({"json": {"ok": False}}, "ok equals false"),
        ({"json": {"ok": False, "error": None}}, "ok equals false"),
        ({"json": {"ok": False, "error": f"bad token {TOKEN}"}}, "bad token [REDACTED]"),
        ({"json": {}}, "ok is missing"),
        ({"json": {"ok": None, "error": "x"}}, "ok is missing"),
        ({"json": [{"ok": True}]}, "ok is missing"),
        ({"json": "ok"}, "ok is missing"),
        ({"status": 204, "text": ""}, "is empty"),
        ({"text": "<html>a portal</html>"}, "not JSON"),
        ({"status": 429, "json": {"ok": False, "error": "ratelimited"}, "headers": {"Retry-After": "30"}}, "429"),
        ({"status": 401, "json": {"ok": False, "error": "x"}}, "401"),
        ({"status": 500, "text": "gone"}, "500"),
        ({"error": "dropped"}, "got no answer"),
        ({"text": "x" * (5 * 1024 * 1024)}, "4 MiB"),
    ],
)
def test_what_is_no_answer_of_slack_fails_the_step(services: FakeTools, answer: dict[str, Any], words: str) -> None:
    services.script[SLACK] = answer
    error = error_of("tell")
    assert all(part in error for part in ('"tell"', SLACK_URL, words)), error
    assert "mode: text" not in error
    assert len(services.requests) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"text": "sent"}, "not JSON"),
        ({"status": 403, "json": {"error": {"message": "insufficient"}}}, "403"),
        ({"status": 429, "json": {}}, "429"),
        ({"status": 502, "text": "x"}, "502"),
    ],
)
def test_what_is_no_answer_of_gmail_fails_the_step(services: FakeTools, answer: dict[str, Any], words: str) -> None:
    services.script[GMAIL] = answer
    error = error_of("write")
    assert all(part in error for part in ('"write"', GMAIL_URL, words)), error


@pytest.mark.parametrize("tool", ["tell", "part", "write"])
@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_is_not_followed(services: FakeTools, tool: str, status: int) -> None:
    redirect = {"status": status, "headers": {"Location": f"{services.url}/elsewhere?token=x"}}
    services.script |= {SLACK: redirect, GMAIL: redirect, "POST /elsewhere": TOLD, "GET /elsewhere": TOLD}
    error = error_of(tool)
    assert all(part in error for part in (str(status), "/elsewhere", "not followed")), error
    assert len(services.requests) == 1


@pytest.mark.parametrize(("tool", "name"), [("tell", "KAMPONG_SLACK_API_URL"), ("write", "KAMPONG_GMAIL_API_URL")])
@pytest.mark.parametrize("address", ["http://user:hunter2@127.0.0.1:9", "ftp://hunter2", "hunter2", ""])
def test_a_wrong_address_of_a_service_is_told_by_its_setting(settings: Any, tool: str, name: str, address: str) -> None:
    setattr(settings, name, address)
    error = error_of(tool)
    assert name in error
    assert "hunter2" not in error
    assert "response: {mode: text}" not in error


@pytest.mark.parametrize("field", ["to", "subject"])
def test_no_data_puts_a_line_into_a_mails_head(services: FakeTools, field: str) -> None:
    assert f'"{field}"' in error_of("write", **{field: "x\r\nBcc: eve@example.org"})
    assert services.requests == []


@pytest.mark.parametrize(("tool", "name"), [("tell", "SLACK_TOKEN"), ("part", "SLACK_TOKEN"), ("write", "GMAIL_TOKEN")])
@pytest.mark.parametrize("value", [{}, {"SLACK_TOKEN": "", "GMAIL_TOKEN": ""}])
def test_without_its_token_nothing_is_sent(services: FakeTools, tool: str, name: str, value: dict[str, str]) -> None:
    error = error_of(tool, env=value)
    assert f'"{tool}"' in error
    assert f"{name} is not set" in error
    assert services.requests == []
