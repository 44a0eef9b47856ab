"""A withdrawal and a worker in the same instant, and two withdrawals: one wins, all records agree."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connections

from approvals import audit
from approvals.models import ApprovalRequest, AuditEntry, RequestStatus
from approvals.recall import withdraw
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.policies import ANSWERS, a_pay
from tests.conftest import People
from tests.counts import count
from tests.fakes_tools import FakeTools
from tests.workbench import acting, key_of, to_pause, work
from workflows.advance import advance
from workflows.errors import NotPossible, Refusal
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.runs import cancel_run, newest

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = count(6, 60)
#: Each waits for the shortest recall there is.
WAITING_ROUNDS = count(3, 60)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


def refusal_of(act: Callable[[], object]) -> Refusal | None:
    """What it was refused with, on a connection of its own."""
    try:
        act()
    except Refusal as refusal:
        return refusal
    finally:
        connections.close_all()
    return None


def at(instant: float, act: Callable[[], object]) -> Callable[[], Refusal | None]:
    def wait_and_act() -> Refusal | None:
        time.sleep(max(0.0, instant - time.time()))
        return refusal_of(act)

    return wait_and_act


def drive(run: Run) -> None:
    """As a worker that polls without a rest until the run is no longer queued."""
    while Run.objects.get(pk=run.pk).status == Status.QUEUED:
        advance(run.workspace, str(run.uuid))


def check_withdrawn(run: Run, successor: Run, key: str, tools: FakeTools, before: int) -> None:
    assert successor.status == Status.CANCELLED
    waits = newest(run)
    assert waits.status == Status.AWAITING
    assert ApprovalRequest.objects.get(key=key).status == RequestStatus.WITHDRAWN
    assert str(ApprovalRequest.objects.get(run=waits).reopened_from) == key
    assert AuditEntry.objects.filter(key=key, act="withdraw").count() == 1
    assert len(tools.requests) == before
    decide(key_of(waits), approved=False, actor=acting(User.objects.get(username="approver")))


def check_done(run: Run, key: str, tools: FakeTools, before: int) -> None:
    assert run_state(run)["status"] == "completed"
    assert ApprovalRequest.objects.get(key=key).status == RequestStatus.DECIDED
    assert not AuditEntry.objects.filter(key=key, act="withdraw").exists()
    assert len(tools.requests) == before + 2


def test_a_withdrawal_and_a_worker_at_the_end_of_the_recall_have_one_winner(
    tmp_path: Path, tools: FakeTools, people: People, report: Callable[[str], None]
) -> None:
    spec, actor = a_pay(tmp_path, "recall: 1s", url=tools.url), acting(people.approver)
    won: Counter[str] = Counter()
    with ThreadPoolExecutor(2) as pool:
        for number in range(WAITING_ROUNDS):
            before = len(tools.requests)
            run, key = to_pause(spec, input=f"round {number}")
            successor = decide(key, approved=True, actor=actor).run
            successor.refresh_from_db()
            assert successor.not_before is not None
            instant = successor.not_before.timestamp()
            early = random.uniform(0.0, 0.02)
            taking = pool.submit(at(instant - early, lambda key=key: withdraw(key, actor=actor, reason="no")))  # type: ignore[misc]
            driving = pool.submit(at(instant - 0.005, lambda run=successor: drive(run)))  # type: ignore[misc]
            refused = taking.result(30)
            assert driving.result(30) is None
            successor.refresh_from_db()
            if refused is None:
                won["withdrawal"] += 1
                check_withdrawn(run, successor, key, tools, before)
            else:
                won["worker"] += 1
                assert isinstance(refused, NotPossible), refused
                assert "went on already" in refused.message
                check_done(run, key, tools, before)
    assert audit.verify().first_bad is None
    report(f"{WAITING_ROUNDS} rounds of a withdrawal against a worker, one winner each: {dict(won)}")


def test_of_two_withdrawals_or_one_and_a_cancel_one_counts(tmp_path: Path, tools: FakeTools, people: People) -> None:
    spec, actor = a_pay(tmp_path, "recall: 10m", url=tools.url), acting(people.approver)
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            run, key = to_pause(spec, input=f"round {number}")
            successor = decide(key, approved=True, actor=actor).run

            def take_back(key: str = key) -> None:
                withdraw(key, actor=actor, reason="no")

            def cancel(run: Run = successor) -> None:
                cancel_run(run, actor=acting(people.operator), reason="no")

            other = cancel if number % 2 else take_back
            told = [one.result(30) for one in [pool.submit(refusal_of, act) for act in (take_back, other)]]
            assert sorted(one is None for one in told) == [False, True], told
            successor.refresh_from_db()
            assert successor.status == Status.CANCELLED
            assert newest(run).status in (Status.AWAITING, Status.CANCELLED)
            open_requests = ApprovalRequest.objects.filter(status=RequestStatus.OPEN).count()
            assert open_requests == StateRecord.objects.filter(key__startswith="approval:").count()
            if newest(run).status == Status.AWAITING:
                decide(key_of(newest(run)), approved=False, actor=actor)
            assert work() == 0
    assert tools.requests == []
