"""Ten thousand requests that wait cost a page what a hundred cost: as many queries, and at most twice the time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.approvals.policies import a_sign
from tests.conftest import People
from tests.counts import count
from tests.databases import PROVE
from tests.surfaces.admin.conftest import QUEUE
from tests.surfaces.api.conftest import with_token
from tests.surfaces.queued import many
from tests.workbench import to_pause

FEW, MANY = 100, count(1_200, 10_000)
TURNS = count(7, 20)
MOST = 2.0

pytestmark = pytest.mark.django_db(transaction=True)


def _cost(ask: Callable[[], Any]) -> tuple[int, float]:
    """How many queries, and the milliseconds: the median, or beside other tests the best of some."""
    assert ask().status_code == 200
    with CaptureQueriesContext(connection) as caught:
        ask()
    queries, took = len(caught), []  # what follows forgets them
    for _ in range(TURNS):
        start = time.perf_counter()
        ask()
        took.append((time.perf_counter() - start) * 1000)
    return queries, statistics.median(took) if PROVE else min(took)


def _settle() -> None:
    """As the database's own upkeep does in time."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def test_a_long_queue_costs_what_a_short_one_costs(
    tmp_path: Path, people: People, report: Callable[[str], None]
) -> None:
    browser, caller = Client(), with_token(people.approver)
    browser.force_login(people.approver)
    runs = [
        to_pause(a_sign(tmp_path, policy))[0]
        for policy in ("require_reason: never", "approvers: {groups: [finance]}", "approvers: {quorum: 2}")
    ]
    asked: dict[str, Callable[[], Any]] = {
        "page": lambda: browser.get(QUEUE),
        "page, mine": lambda: browser.get(QUEUE + "?mine=me"),
        "page, one group": lambda: browser.get(QUEUE + "?group=finance"),
        "page, words": lambda: browser.get(QUEUE + "?q=really"),
        "GET /approvals": lambda: caller.get("/approvals"),
        "GET /approvals?mine=1": lambda: caller.get("/approvals?mine=1"),
        "GET /approvals?olderThan=4h": lambda: caller.get("/approvals?olderThan=4h"),
        "GET /approvals?q=nowhere": lambda: caller.get("/approvals?q=nowhere"),
    }
    for run in runs:
        many(run, FEW // len(runs))
    _settle()
    before = {name: _cost(ask) for name, ask in asked.items()}
    for run in runs:
        many(run, (MANY - FEW) // len(runs))
    _settle()
    assert "1,000+" in browser.get(QUEUE).content.decode()
    for name, ask in asked.items():
        for _ in range(3):  # what else the machine did in these seconds is not the queue's
            queries, took = _cost(ask)
            if took <= MOST * before[name][1]:
                break
        report(f"{name}: {queries} queries; {before[name][1]:.1f} ms at {FEW}, {took:.1f} ms at {MANY}")
        assert 0 < queries == before[name][0], name
        assert took <= MOST * before[name][1], (name, before[name][1], took)
