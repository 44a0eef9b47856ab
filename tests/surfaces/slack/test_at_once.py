"""Many clicks at once, a database that is locked, a run that takes its time (scenarios 1, 43, 56)."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections, transaction

from approvals.errors import AlreadyResolved, ApprovalNotFound
from approvals.models import ApprovalRequest, AuditEntry
from approvals.notices import sender
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.policies import member
from tests.conftest import People
from tests.fakes_slack import everything, form, send, text
from tests.surfaces.slack.conftest import Channel, asking
from tests.workbench import acting
from workflows.models import Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


def together(acts: list[Callable[[], Any]]) -> list[Any]:
    """Do all of them at the same moment, each in a thread; what each of them answered."""
    found: list[Any] = [None] * len(acts)
    gate = threading.Barrier(len(acts))

    def one(number: int) -> None:
        try:
            gate.wait(30)
            found[number] = acts[number]()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


@pytest.mark.parametrize("round", range(3))
def test_eight_press_at_once_and_one_decides(round: int, channel: Channel, tmp_path: Path) -> None:
    members = [channel.linked(member(f"m{number}"), f"Um{number}") for number in range(6)]
    others = [member("api"), member("cli")]
    run, key, card = channel.card(asking(tmp_path))
    actions = ("kampong_approve", "kampong_reject")
    clicks: list[Callable[[], Any]] = [
        lambda one=one, action=actions[number % 2]: one.press(card, action).status_code  # type: ignore[misc]
        for number, one in enumerate(members)
    ]

    def elsewhere(name: Any, approved: bool) -> str:
        try:
            return str(decide(key, approved=approved, actor=acting(name)).decision["outcome"])
        except (AlreadyResolved, ApprovalNotFound):
            return "late"

    answers = together([*clicks, lambda: elsewhere(others[0], True), lambda: elsewhere(others[1], False)])
    assert answers[:6] == [200] * 6
    entry = AuditEntry.objects.get(act="decide")
    won_elsewhere = 2 - answers[6:].count("late")
    won_here = 1 - won_elsewhere
    replies = channel.replies(won_here + 2 * (6 - won_here))
    late = [reply for reply in replies if reply["replace_original"] is False]
    assert len(late) == 6 - won_here
    assert all(f"by {entry.actor} on" in reply["text"] for reply in late)
    assert newest(run).status == (Status.QUEUED if entry.outcome == "approved" else Status.REJECTED)
    sender.send_due()
    assert f"by {entry.actor} on" in channel.slack.updates[-1]["text"]


def test_the_same_body_again_while_the_first_is_handled(channel: Channel, tmp_path: Path) -> None:
    run, _, card = channel.card(asking(tmp_path))
    body = form(channel.approver.payload(card, "kampong_approve"))

    def post() -> tuple[int, float]:
        began = time.monotonic()
        return send(body).status_code, time.monotonic() - began

    for status, seconds in [*together([post, post, post]), post()]:
        assert status == 200
        assert seconds < 3
    assert AuditEntry.objects.filter(act="decide").count() == 1
    assert newest(run).status == Status.QUEUED
    assert everything(channel.replies(7)).count("Too late") == 3 * 2


class Locked:
    """Somebody else holds what a decision needs, until the end of the block."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._held, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        if connection.vendor == "sqlite":
            other = sqlite3.connect(str(connection.settings_dict["NAME"]), isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            self._held.set()
            self._done.wait(30)
            other.rollback()
            other.close()
            return
        try:
            with transaction.atomic():
                list(StateRecord.objects.select_for_update().filter(key=f"approval:{self._key}"))
                self._held.set()
                self._done.wait(30)
        finally:
            connections.close_all()

    def __enter__(self) -> None:
        self._thread.start()
        assert self._held.wait(10)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(30)


def test_a_click_on_a_locked_database_is_told_to_try_again_within_three_seconds(
    channel: Channel, tmp_path: Path
) -> None:
    run, key, card = channel.card(asking(tmp_path))
    with Locked(key):
        began = time.monotonic()
        answer = channel.approver.press(card)
        seconds = time.monotonic() - began
        assert (answer.status_code, answer.content) == (200, b"")
        assert seconds < 3
        assert "Try again in a moment" in channel.replies()[0]["text"]
    assert ApprovalRequest.objects.get(key=key).status == "open"
    channel.approver.press(card)
    channel.replies(2)
    assert newest(run).status == Status.QUEUED
    with connection.cursor() as cursor:  # nobody else inherits the haste
        if connection.vendor == "postgresql":
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("0",)
        else:
            cursor.execute("PRAGMA busy_timeout")
            assert cursor.fetchone()[0] >= 5000


def test_a_form_on_a_locked_database_keeps_what_was_typed(channel: Channel, tmp_path: Path) -> None:
    _, key, card = channel.card(asking(tmp_path, "require_reason: always"))
    channel.approver.press(card)
    (view,) = channel.slack.views
    with Locked(key):
        answer = channel.approver.submit(view, reason=text("read it")).json()
    assert answer["response_action"] == "errors"
    assert "Try again in a moment" in answer["errors"]["reason"]
    assert channel.approver.submit(view, reason=text("read it")).content == b""
    channel.replies()


def test_an_answer_that_cannot_be_posted_costs_nothing_and_is_logged_once(
    channel: Channel, tmp_path: Path, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    run, _, card = channel.card(asking(tmp_path))
    channel.slack.script["POST https://slack.com/hooks/r"] = {"status": 404, "text": "expired_url"}
    assert channel.approver.press(card).status_code == 200
    channel.replies()
    end = time.monotonic() + 20
    while "could not be posted: HTTP 404" not in caplog.text and time.monotonic() < end:
        time.sleep(0.02)
    assert caplog.text.count("could not be posted") == 1
    assert channel.slack.hook not in caplog.text
    sender.send_due()
    assert "Approved by approver" in channel.slack.updates[-1]["text"]
    assert newest(run).status == Status.QUEUED
