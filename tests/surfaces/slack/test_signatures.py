"""Only what Slack signed, just now, is read at all; the rest of it is bad input (scenarios 44, 45, 51)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from approvals.models import AuditEntry
from tests.conftest import Clock
from tests.fakes_slack import SECRET, form, send, signed
from tests.surfaces.slack.conftest import Channel, asking
from workflows.models import Status

# what is read and drawn is the same on both
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("postgres")]

Headers = dict[str, str]
FORGED: dict[str, Callable[[bytes], Headers]] = {
    "six minutes old": lambda body: signed(body, away=-360),
    "six minutes ahead": lambda body: signed(body, away=360),
    "a changed byte": lambda body: signed(body + b"x"),
    "another secret": lambda body: signed(body, secret="another"),
    "no headers": lambda body: {},
    "no time": lambda body: {"X-Slack-Signature": signed(body)["X-Slack-Signature"]},
    "no signature": lambda body: {"X-Slack-Request-Timestamp": signed(body)["X-Slack-Request-Timestamp"]},
    "an empty signature": lambda body: signed(body) | {"X-Slack-Signature": ""},
    "a signature that is no ASCII": lambda body: signed(body) | {"X-Slack-Signature": "v0=ü"},
    "an empty time": lambda body: signed(body) | {"X-Slack-Request-Timestamp": ""},
    "a word for a time": lambda body: signed(body) | {"X-Slack-Request-Timestamp": "soon"},
    "a float for a time": lambda body: signed(body) | {"X-Slack-Request-Timestamp": "1e9"},
    "a negative time": lambda body: signed(body) | {"X-Slack-Request-Timestamp": "-1"},
    "digits of another script": lambda body: signed(body) | {"X-Slack-Request-Timestamp": "١٢٣"},
    "a time without end": lambda body: signed(body) | {"X-Slack-Request-Timestamp": "9" * 5000},
}


def refused(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The one error shape."""
    body: dict[str, Any] = json.loads(answer.content)
    assert (answer.status_code, body["success"], body["code"]) == (status, False, code), body
    return body


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_a_forged_click_changes_nothing(forge: Callable[[bytes], Headers], channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path))
    body = form(channel.approver.payload(card, "kampong_approve"))
    refused(send(body, forge(body)), 401, "not_authenticated")
    run.refresh_from_db()
    assert run.status == Status.AWAITING
    assert not AuditEntry.objects.filter(act="decide").exists()
    assert channel.slack.replies == []


@pytest.mark.parametrize("secret", ["", "  ", None])
def test_an_empty_secret_never_verifies(
    secret: str | None, channel: Channel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if secret is None:
        monkeypatch.delenv("SLACK_SIGNING_SECRET")
    else:
        monkeypatch.setenv("SLACK_SIGNING_SECRET", secret)
    for given in (secret or "x", SECRET):
        refused(
            send(b"payload=1", signed(b"payload=1", secret=given if given.strip() else "x")), 401, "not_authenticated"
        )
    assert "SLACK_SIGNING_SECRET is not set" in caplog.text


def test_a_skewed_clock_is_one_clear_line(channel: Channel, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    body = b"payload=%7B%7D"
    headers = signed(body)
    clock.advance(600)
    with caplog.at_level(logging.WARNING):
        refused(send(body, headers), 401, "not_authenticated")
    (record,) = [one for one in caplog.records if one.name == "kampong.slack"]
    assert "s away from this machine's clock" in record.getMessage()


def test_four_minutes_are_within_the_tolerance(channel: Channel, tmp_path: Path) -> None:
    _, _, card = channel.card(asking(tmp_path))
    body = form(channel.approver.payload(card, "kampong_approve"))
    assert send(body, signed(body, away=-240)).status_code == 200


def test_a_body_with_emoji_plus_signs_and_odd_order_is_verified_as_it_came(channel: Channel, tmp_path: Path) -> None:
    _, _, card = channel.card(asking(tmp_path))
    payload = channel.approver.payload(card, "kampong_approve")
    payload = dict(reversed(payload.items())) | {"note": "a+b 😀 ü"}
    body = b"odd=1&payload=" + quote(json.dumps(payload, ensure_ascii=False)).encode().replace(b"%20", b"+")
    assert send(body).status_code == 200
    assert AuditEntry.objects.filter(act="decide").count() == 1


@pytest.mark.parametrize("body", [b"payload=\xff\xfe", b"\xff", b"payload=%ff%fe", b"a" * 100])
def test_signed_bytes_that_are_no_form_are_bad_input_and_no_bad_signature(body: bytes, channel: Channel) -> None:
    refused(send(body), 400, "invalid")


SHAPES: dict[str, Any] = {
    "empty": b"",
    "no payload": b"other=1",
    "two payloads": b"payload=%7B%7D&payload=%7B%7D",
    "a list": form("[]"),
    "a text": form('"x"'),
    "a number": form("5"),
    "null": form("null"),
    "nothing": form(""),
    "broken": form("{"),
    "deep": form("[" * 100_000),
    "deep inside": form('{"actions": ' + "[" * 100_000 + "}"),
    "an empty object": form({}),
    "actions that are none": form({"actions": []}),
    "actions that are text": form({"actions": "x"}),
    "an action that is a number": form({"actions": [5]}),
    "another type": form({"type": "shortcut"}),
    "a form that is none": form({"type": "view_submission"}),
    "a form of somebody else": form({"type": "view_submission", "view": {"callback_id": "x"}}),
}


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES.keys())
def test_a_signed_body_of_another_shape_is_refused(body: bytes, channel: Channel, caplog: Any) -> None:
    refused(send(body), 400, "invalid")
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        {"response_url": None},
        {"user": {}},
        {"user": {"id": 5}},
        {"user": {"id": "U1"}, "team": None},
        {"user": {"id": "not an id!"}},
        {"actions": [{"action_id": "other", "value": '{"runId": "x"}'}]},
        {"actions": [{"action_id": "kampong_approve", "value": "x"}]},
        {"actions": [{"action_id": "kampong_approve", "value": '{"runId": 5}'}]},
        {"actions": [{"action_id": "kampong_approve"}]},
    ],
)
def test_a_click_that_lacks_what_it_needs_is_refused(change: dict[str, Any], channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path))
    refused(send(form(channel.approver.payload(card, "kampong_approve") | change)), 400, "invalid")
    run.refresh_from_db()
    assert run.status == Status.AWAITING


def test_a_body_over_the_limit_another_type_and_another_verb_are_refused(channel: Channel) -> None:
    refused(send(b"payload=" + b"x" * (2 * 1024 * 1024)), 413, "too_large")
    refused(send(b"{}", kind="application/json"), 415, "unsupported_media_type")
    refused(Client().get("/slack/interactions"), 405, "method_not_allowed")


def test_a_key_that_nobody_issued_is_answered_in_words(channel: Channel, tmp_path: Path) -> None:
    _, _, card = channel.card(asking(tmp_path))
    payload = channel.approver.payload(card, "kampong_approve")
    for key in ("00000000-0000-4000-8000-000000000000", "no key at all", "x" * 5000):
        payload["actions"][0]["value"] = json.dumps({"runId": key})
        assert send(form(payload)).status_code == 200
    for reply in channel.replies(3):
        assert "it was resolved, or its time is over" in reply["text"]
