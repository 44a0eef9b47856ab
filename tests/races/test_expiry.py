"""Expiry and approval in the same instant: one wins, all records agree, and the loser is told which."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from pytest_django.fixtures import Settings

from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry, RequestStatus
from approvals.queue import waiting
from approvals.tokens import create_token
from statestore.models import StateRecord
from tests.conftest import People
from tests.counts import count
from tests.fakes_tools import FakeTools
from tests.workbench import to_pause, work
from workflows.models import Run
from workflows.reading import run_state
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = count(3, 100)
LIFETIME = 1.5
#: How far around the end of the lifetime the sweep acts.
INSTANT = 0.004


def in_threads(*acts: Callable[[], Any]) -> list[Any]:
    """Each act in a thread and on a connection of its own; their answers in order."""
    answers: list[Any] = [None] * len(acts)

    def one(place: int) -> None:
        try:
            answers[place] = acts[place]()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=(place,)) for place in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return answers


def sleep_until(instant: float) -> None:
    time.sleep(max(0.0, instant - time.time()))


def approve(key: str, token: str) -> Any:
    """Over HTTP."""
    return Client().post(
        f"/approvals/{key}/approve?wait=0",
        {"approved": True},
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )


def seconds_to_the_claim(spec: SpecFile, token: str) -> float:
    """About how long an approval takes here: to race the clock, it must begin that much earlier."""
    took = []
    for _ in range(3):
        _, key = to_pause(spec)
        begun = time.monotonic()
        assert approve(key, token).status_code == 200
        took.append(time.monotonic() - begun)
    work()
    return min(took)


def one_round(spec: SpecFile, token: str, early: float) -> tuple[Run, ApprovalRequest, Any, int]:
    """The approver's answer, and how many requests the sweeps closed."""
    run, key = to_pause(spec)
    request = ApprovalRequest.objects.get(key=key)
    instant = request.expires_at.timestamp()
    assert time.time() < instant, "the pause took longer than its lifetime"

    def approve_in_time() -> Any:
        sleep_until(instant - early * random.uniform(0.4, 2.6))
        return approve(key, token)

    def sweep() -> int:
        sleep_until(instant + random.uniform(-INSTANT, INSTANT))
        while not (closed := expire_due()) and ApprovalRequest.objects.filter(key=key, status="open").exists():
            pass
        return closed

    answer, closed = in_threads(approve_in_time, sweep)
    return run, request, answer, closed


def check_approved(run: Run, request: ApprovalRequest, tools: FakeTools, before: int) -> None:
    assert request.status == RequestStatus.DECIDED
    assert AuditEntry.objects.get(key=request.key).outcome == "approved"
    work()
    assert run_state(run)["status"] == "completed"
    assert len(tools.requests) == before + 3


def check_expired(run: Run, request: ApprovalRequest, tools: FakeTools, before: int) -> None:
    assert request.status == RequestStatus.EXPIRED
    entry = AuditEntry.objects.get(key=request.key)
    assert (entry.act, entry.outcome, entry.surface) == ("expire", "expired", "system")
    assert work() == 0
    assert run_state(run)["status"] == "expired"
    assert Run.objects.filter(resumed_from=run).count() == 0
    assert len(tools.requests) == before + 1


def test_expiry_and_approval_in_the_same_instant_have_one_winner(
    spec: SpecFile, tools: FakeTools, people: People, settings: Settings, report: Callable[[str], None]
) -> None:
    token = create_token(people.approver)
    early = seconds_to_the_claim(spec, token)
    entries = AuditEntry.objects.count()
    settings.KAMPONG_APPROVAL_TTL = LIFETIME
    won: Counter[str] = Counter()
    for _ in range(ROUNDS):
        before = len(tools.requests)
        run, request, answer, closed = one_round(spec, token, early)
        request.refresh_from_db()
        assert waiting().items == []
        assert not StateRecord.objects.filter(key__contains=str(request.key)).exists()
        if answer.status_code == 200:
            won["approval"] += 1
            assert closed == 0
            check_approved(run, request, tools, before)
            continue
        won["expiry"] += 1
        body = answer.json()
        assert (answer.status_code, body["code"]) in {(404, "approval_not_found"), (409, "already_resolved")}, body
        assert body["decision"]["outcome"] == "expired"
        assert "expired" in body["error"]
        assert closed == 1
        check_expired(run, request, tools, before)
    assert AuditEntry.objects.count() == entries + ROUNDS
    report(f"{ROUNDS} rounds of approval against expiry, one winner each: {dict(won)}")


@pytest.mark.parametrize("point", ["decide.record_read", "decide.before_claim"])
def test_an_approval_whose_claim_comes_after_the_end_of_the_lifetime_changes_nothing(
    point: str,
    spec: SpecFile,
    tools: FakeTools,
    people: People,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = create_token(people.approver)
    settings.KAMPONG_APPROVAL_TTL = LIFETIME
    monkeypatch.setenv("KAMPONG_FAULTS", f"{point}=sleep:{LIFETIME}")
    run, key = to_pause(spec)
    answer = approve(key, token)
    assert (answer.status_code, answer.json()["code"]) == (409, "already_resolved")
    assert answer.json()["decision"]["outcome"] == "expired"
    assert run_state(run)["status"] == "awaiting_approval", "no sweep has come by"
    assert expire_due() == 1
    assert expire_due() == 0
    check_expired(run, ApprovalRequest.objects.get(key=key), tools, before=0)
