"""A click is answered before anything that follows from it is done (scenario 43)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from approvals.models import AuditEntry
from approvals.notices import sender
from tests.approvals.policies import written
from tests.counts import count
from tests.fakes_slack import everything, form, send, signed
from tests.fakes_tools import FakeTools
from tests.served import until
from tests.surfaces.everywhere.test_what_was_shown import PAYING
from tests.surfaces.slack.conftest import Channel
from tests.workbench import to_pause
from workflows.models import Status
from workflows.runs import newest
from workflows.worker import WorkerPool

pytestmark = pytest.mark.django_db(transaction=True)

#: How long the step behind the approval takes.
SLOW = count(3, 10)
AGAIN = {"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"}


def timed(body: bytes, **headers: str) -> tuple[int, float]:
    began = time.monotonic()
    status = send(body, signed(body) | headers).status_code
    return status, time.monotonic() - began


def test_a_click_and_its_repeats_are_answered_while_the_step_takes_its_time(
    channel: Channel, tmp_path: Path, report: Callable[[str], None]
) -> None:
    with FakeTools({"POST /pay": {"hang": SLOW, "json": {"id": "p-1"}}}) as tools:
        run, key = to_pause(written(tmp_path, PAYING.replace("URL", tools.url)))
        sender.send_due()
        body = form(channel.approver.payload(channel.slack.posts[-1], "kampong_approve"))
        pool = WorkerPool(1)
        pool.start()
        try:
            answers = together(body)
            until(lambda: tools.requests)
            answers.append(timed(body, **AGAIN))
            assert newest(run).status == Status.RUNNING, "the step is still at work"
            until(lambda: newest(run).status == Status.COMPLETED)
            answers.append(timed(body, **AGAIN))
        finally:
            assert pool.stop(20) == ()
    assert [status for status, _ in answers] == [200] * 4
    slowest = max(seconds for _, seconds in answers)
    assert slowest < 3
    assert len(tools.requests) == 1
    assert AuditEntry.objects.filter(act="decide", key=key).count() == 1
    until(lambda: everything(channel.slack.replies).count("Too late") >= 3)
    report(f"a click before a step of {SLOW} s, and three repeats: the slowest was answered in {slowest:.2f} s")


def together(body: bytes) -> list[tuple[int, float]]:
    """The click, and Slack's repeat of it while the first is handled."""
    found: list[tuple[int, float]] = []
    gate = threading.Barrier(2)

    def one(headers: dict[str, str]) -> None:
        try:
            gate.wait(30)
            found.append(timed(body, **headers))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=(headers,)) for headers in ({}, AGAIN)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found
