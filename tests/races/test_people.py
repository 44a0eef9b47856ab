"""Handing on, standing in, reminding and escalating at the instant of something else: once, or not at all."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connections

from approvals import audit
from approvals.absences import set_absence
from approvals.delegating import delegate
from approvals.errors import AlreadyResolved, ApprovalNotFound
from approvals.expiry import expire_due
from approvals.models import Absence, ApprovalRequest, AuditEntry, Delegation, Notice, Vote
from approvals.reminding import escalate_due, remind_due
from approvals.services import Outcome, decide
from statestore.clock import now
from tests.approvals.policies import a_sign, member
from tests.counts import count
from tests.workbench import acting, to_pause
from workflows.errors import Invalid, Refusal
from workflows.models import Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = count(10, 100)
MAY_HAND = "approvers: {groups: [finance], delegate: true"


def together(pool: ThreadPoolExecutor, *acts: Callable[[], Any]) -> list[Any]:
    """All act at the signal; what each answered, or the refusal."""
    barrier = threading.Barrier(len(acts))

    def act(one: Callable[[], Any]) -> Any:
        barrier.wait(30)
        try:
            return one()
        except Refusal as refusal:
            return refusal
        finally:
            connections.close_all()

    return list(pool.map(act, acts))


@pytest.fixture
def finance(db: None) -> list[User]:
    return [member(name, "finance") for name in ("asha", "bo")]


@pytest.fixture
def dev(db: None) -> User:
    return member("dev")


def test_a_vote_and_a_delegation_at_once_are_both_kept(tmp_path: Path, finance: list[User], dev: User) -> None:
    asha, bo = finance
    spec = a_sign(tmp_path, f"{MAY_HAND}, quorum: 2}}")
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            run, key = to_pause(spec, input=f"round {number}")
            vote, handed = together(
                pool,
                partial(decide, key, approved=True, actor=acting(bo)),
                partial(delegate, key, to="dev", actor=acting(asha)),
            )
            assert isinstance(vote, Outcome)
            assert isinstance(handed, ApprovalRequest)
            assert ApprovalRequest.objects.get(key=key).revision == 2
            assert Vote.objects.filter(request__key=key).count() == 1
            assert decide(key, approved=True, actor=acting(dev)).votes is None
            assert newest(run).status == Status.QUEUED
    assert audit.verify().first_bad is None


def test_a_decision_and_a_delegation_at_once(tmp_path: Path, finance: list[User], dev: User) -> None:
    asha, bo = finance
    spec = a_sign(tmp_path, f"{MAY_HAND}}}")
    ends: Counter[str] = Counter()
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            run, key = to_pause(spec, input=f"round {number}")
            decided, handed = together(
                pool,
                partial(decide, key, approved=True, actor=acting(bo)),
                partial(delegate, key, to="dev", actor=acting(asha)),
            )
            assert isinstance(decided, Outcome)
            assert newest(run).status == Status.QUEUED
            acts = list(AuditEntry.objects.filter(key=key).order_by("id").values_list("act", flat=True))
            if isinstance(handed, ApprovalRequest):
                assert acts == ["delegate", "decide"]
            else:
                assert isinstance(handed, AlreadyResolved | ApprovalNotFound)
                assert handed.extra["decision"]["by"] == "bo"
                assert acts == ["decide"]
            assert Delegation.objects.filter(request__key=key).count() == acts.count("delegate")
            assert Notice.objects.filter(request__key=key, about="handed").count() == acts.count("delegate")
            ends[acts[0]] += 1
    assert sum(ends.values()) == ROUNDS


def test_handing_the_same_to_the_same_at_once_is_one(tmp_path: Path, finance: list[User], dev: User) -> None:
    spec = a_sign(tmp_path, f"{MAY_HAND}}}")
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            _, key = to_pause(spec, input=f"round {number}")
            told = together(pool, *[partial(delegate, key, to="dev", actor=acting(who)) for who in finance])
            assert Counter(type(one) for one in told) == {ApprovalRequest: 1, Invalid: 1}
            assert Delegation.objects.filter(request__key=key).count() == 1


def test_two_sweepers_send_one_reminder_and_make_one_end_for_each_of_fifty(
    tmp_path: Path, finance: list[User], clock: Any
) -> None:
    spec = a_sign(tmp_path, "approvers: {users: [asha]}, remind_every: 1h, expires_in: 3h")
    for number in range(50):
        to_pause(spec, input=f"request {number}")
    with ThreadPoolExecutor(2) as pool:
        for rounds in (1, 2):
            clock.advance(3601)
            swept = together(pool, remind_due, remind_due)
            assert sum(swept) == 50
            assert Notice.objects.filter(about="reminder").count() == 50 * rounds
        told = Notice.objects.filter(about="reminder").values_list("request", flat=True)
        assert set(Counter(told).values()) == {2}
        clock.advance(3601)
        swept = together(pool, *[lambda: (remind_due(), expire_due())] * 2)
    assert [sum(done) for done in zip(*swept, strict=True)] == [0, 50]
    assert AuditEntry.objects.filter(act="expire", surface="system").count() == 50


def test_an_escalation_and_a_decision_at_once(tmp_path: Path, finance: list[User], clock: Any) -> None:
    Group.objects.create(name="heads")
    boss = member("boss", "heads")
    spec = a_sign(tmp_path, "approvers: {groups: [finance]}, escalate: {after: 1h, groups: [heads]}")
    with ThreadPoolExecutor(3) as pool:
        for number in range(ROUNDS):
            run, key = to_pause(spec, input=f"round {number}")
            clock.advance(3601)
            decided, *swept = together(
                pool,
                partial(decide, key, approved=True, actor=acting(boss)),
                escalate_due,
                escalate_due,
            )
            assert isinstance(decided, Outcome), decided
            assert newest(run).status == Status.QUEUED
            acts = list(AuditEntry.objects.filter(key=key).order_by("id").values_list("act", flat=True))
            assert acts == ["escalate"] * sum(swept) + ["decide"]
            request = ApprovalRequest.objects.get(key=key)
            assert (request.status, request.escalated_at is not None) == ("decided", sum(swept) == 1)
            assert Notice.objects.filter(request=request, about="escalated").count() == sum(swept)
    assert audit.verify().first_bad is None


def test_two_absences_at_once_are_one(finance: list[User], dev: User) -> None:
    asha, _ = finance
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            start = now() + timedelta(days=number)
            told = together(
                pool,
                *[
                    partial(
                        set_absence, acting(asha), substitute=to, starts_at=start, ends_at=start + timedelta(hours=9)
                    )
                    for to in ("dev", "bo")
                ],
            )
            assert Counter(type(one) for one in told) == {Absence: 1, Invalid: 1}, told
    assert Absence.objects.count() == AuditEntry.objects.filter(act="away").count() == ROUNDS
