"""An approval and an expiry that calls a tool in the same instant: one of the two is called for, never both."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connections

from approvals.errors import AlreadyResolved, ApprovalNotFound
from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_pay
from tests.conftest import People
from tests.counts import count
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause, work
from workflows.actors import Actor
from workflows.reading import run_state

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = count(3, 50)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


def press(key: str, actor: Actor, instant: float) -> str:
    """What it came to: what the approver was told."""
    time.sleep(max(0.0, instant - time.time()))
    try:
        told: str = decide(key, approved=True, actor=actor).decision["outcome"]
    except (AlreadyResolved, ApprovalNotFound) as refused:
        told = refused.extra["decision"]["outcome"]
    finally:
        connections.close_all()
    return told


def sweep(key: str, instant: float) -> int:
    time.sleep(max(0.0, instant - time.time()))
    closed = 0
    try:
        while ApprovalRequest.objects.filter(key=key, status="open").exists():
            closed += expire_due()
    finally:
        connections.close_all()
    return closed


def test_one_of_approval_and_expiry_is_called_for(
    tmp_path: Path, tools: FakeTools, people: People, report: Callable[[str], None]
) -> None:
    spec = a_pay(tmp_path, "expires_in: 1s, on_expire: execute_tool(tell)", url=tools.url)
    actor = acting(people.approver)
    won: Counter[str] = Counter()
    with ThreadPoolExecutor(3) as pool:
        for number in range(ROUNDS):
            run, key = to_pause(spec, input=f"round {number}")
            before = len(tools.requests)
            end = ApprovalRequest.objects.get(key=key).expires_at.timestamp()
            approving = pool.submit(press, key, actor, end - random.uniform(0.0, 0.03))
            sweeping = [pool.submit(sweep, key, end) for _ in range(2)]
            told = approving.result(30)
            assert told in ("approved", "expired")
            approved = told == "approved"
            closed = sum(one.result(30) for one in sweeping)
            work()
            called = [request.url.rpartition("/")[2] for request in tools.requests[before:]]
            assert called == (["pay", "last"] if approved else ["tell"])
            assert closed == (0 if approved else 1)
            assert run_state(run)["status"] == ("completed" if approved else "expired")
            assert AuditEntry.objects.filter(key=key).count() == 1
            won["approval" if approved else "expiry"] += 1
    report(f"{ROUNDS} rounds of an approval against an expiry that calls, one winner each: {dict(won)}")
