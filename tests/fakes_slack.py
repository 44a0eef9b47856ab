"""A Slack on loopback: its API and the addresses for answers, and clicks as Slack signs and sends them.

`script` may hold answers of its own (as in `fakes_tools`) that come before the friendly ones.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.test import Client
from slack_sdk.signature import SignatureVerifier

from statestore.clock import now
from tests.fakes_tools import Answer, FakeTools, Recorded

API = "https://slack.com/api"
HOOK = "https://slack.com/hooks/r"
SECRET = "a signing secret"
TEAM, CHANNEL = "T1", "C1"
FORM_TYPE = "application/x-www-form-urlencoded"


class FakeSlack(FakeTools):
    """Every message gets a time stamp of its own."""

    def __init__(self, script: Mapping[str, Any] | None = None) -> None:
        super().__init__(script, keep_alive=False)
        self.api_url = self.mounted("https://slack.com") + "/api"
        self.hook = self.mounted("https://slack.com") + "/hooks/r"

    def answer(self, method: str, target: str, headers: tuple[tuple[str, str], ...], body: bytes) -> Answer:
        url = self._restored(target)
        if f"{method} {url}" in self.script:
            return super().answer(method, target, headers, body)
        with self._lock:
            self.requests.append(Recorded(method=method, url=url, headers=headers, body=body, at=time.monotonic()))
            number = len(self.requests)
        return (
            {"json": {"ok": True, "channel": CHANNEL, "ts": f"{number}.1"}} if url.startswith(API) else {"text": "ok"}
        )

    def of(self, name: str) -> list[dict[str, Any]]:
        """The bodies that were sent to a method of the API, or as an answer to a click (`hook`)."""
        url = HOOK if name == "hook" else f"{API}/{name}"
        return [request.json() for request in self.requests if request.url == url]

    @property
    def posts(self) -> list[dict[str, Any]]:
        return self.of("chat.postMessage")

    @property
    def updates(self) -> list[dict[str, Any]]:
        return self.of("chat.update")

    @property
    def replies(self) -> list[dict[str, Any]]:
        return self.of("hook")

    @property
    def views(self) -> list[dict[str, Any]]:
        return [body["view"] for body in self.of("views.open")]


def signed(body: bytes, *, secret: str = SECRET, away: float = 0) -> dict[str, str]:
    """The headers with which Slack signs a body, `away` seconds from now; slack-sdk reckons the same where it can."""
    stamp = str(int(now().timestamp() + away))
    signature = "v0=" + hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, "sha256").hexdigest()
    with contextlib.suppress(UnicodeDecodeError):
        assert signature == SignatureVerifier(secret).generate_signature(timestamp=stamp, body=body)
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature}


def form(payload: Any) -> bytes:
    return urlencode({"payload": payload if isinstance(payload, str) else json.dumps(payload)}).encode()


def send(body: bytes, headers: Mapping[str, str] | None = None, *, kind: str = FORM_TYPE) -> Any:
    """Post these bytes to the interactions."""
    given = signed(body) if headers is None else dict(headers)
    client = Client(raise_request_exception=False)
    # Named twice: the client drops the type of an empty body.
    return client.generic("POST", "/slack/interactions", body, content_type=kind, headers=given, CONTENT_TYPE=kind)


@dataclass(kw_only=True)
class Member:
    """Somebody in the channel, with or without a user here."""

    slack: FakeSlack
    id: str
    name: str = "ash"
    extra: dict[str, Any] = field(default_factory=dict)

    def payload(self, card: Mapping[str, Any], action_id: str) -> dict[str, Any]:
        """A press of a button of this message, as it was posted."""
        buttons = next(block for block in card["blocks"] if block["type"] == "actions")
        button = next(one for one in buttons["elements"] if one["action_id"] == action_id)
        return {
            "type": "block_actions",
            "user": {"id": self.id, "username": self.name, "team_id": TEAM},
            "team": {"id": TEAM, "domain": "example"},
            "trigger_id": "1.2.3",
            "response_url": self.slack.hook,
            "container": {"type": "message", "message_ts": "1.1", "channel_id": CHANNEL},
            "actions": [
                {"type": "button", "action_id": action_id, "block_id": buttons["block_id"], "value": button["value"]}
            ],
            **self.extra,
        }

    def press(self, card: Mapping[str, Any], action_id: str = "kampong_approve") -> Any:
        return send(form(self.payload(card, action_id)))

    def submit(self, view: Mapping[str, Any], **typed: Any) -> Any:
        """Send a modal as it was opened; `typed` holds elements by their block, `__` for a dot in its name."""
        values = {name.replace("__", "."): {"v": element} for name, element in typed.items()}
        sent = {"callback_id": view["callback_id"], "private_metadata": view["private_metadata"]}
        payload = {
            "type": "view_submission",
            "user": {"id": self.id, "username": self.name, "team_id": TEAM},
            "team": {"id": TEAM},
            "view": {**sent, "state": {"values": values}},
        }
        return send(form(payload))


def text(value: str) -> dict[str, Any]:
    """What was typed into a line."""
    return {"type": "plain_text_input", "value": value}


def picked(number: int) -> dict[str, Any]:
    """What was chosen in a list, by its place."""
    return {"type": "static_select", "selected_option": {"value": str(number)}}


def everything(body: Any) -> str:
    """All that a message says, as one text."""
    return json.dumps(body, ensure_ascii=False)
