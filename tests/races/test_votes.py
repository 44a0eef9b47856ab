"""Two people vote in the same instant: both votes are kept, one of them decides, once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connections

from approvals import audit
from approvals.errors import AlreadyResolved, ApprovalNotFound
from approvals.models import ApprovalRequest, AuditEntry, Vote
from approvals.services import Outcome, decide
from statestore.models import StateRecord
from tests.approvals.policies import a_sign
from tests.counts import count
from tests.workbench import acting, to_pause
from workflows.errors import NotAllowed, Refusal
from workflows.models import Run, Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = count(10, 100)
Told = Outcome | Refusal


def together(pool: ThreadPoolExecutor, key: str, votes: list[tuple[User, bool]]) -> list[Told]:
    """All press at the signal; what each was told."""
    barrier = threading.Barrier(len(votes))

    def press(vote: tuple[User, bool]) -> Told:
        user, approved = vote
        barrier.wait(30)
        try:
            return decide(key, approved=approved, actor=acting(user))
        except Refusal as refusal:
            return refusal
        finally:
            connections.close_all()

    return list(pool.map(press, votes))


def decisions(key: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(key=key, act="decide"))


def test_two_votes_at_once_are_one_decision_and_none_is_lost(tmp_path: Path, eight: list[User]) -> None:
    spec = a_sign(tmp_path, "approvers: {quorum: 2}")
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            run, key = to_pause(spec, input=f"round {number}")
            told = together(pool, key, [(eight[0], True), (eight[1], True)])
            assert all(isinstance(one, Outcome) for one in told), told
            assert sorted(one.votes is None for one in told if isinstance(one, Outcome)) == [False, True]
            assert Vote.objects.filter(request__key=key).count() == 2
            assert len(decisions(key)) == AuditEntry.objects.filter(key=key, act="vote").count() == 1
            assert Run.objects.filter(resumed_from=run).count() == 1
            assert newest(run).status == Status.QUEUED
    assert audit.verify().first_bad is None


def test_one_person_at_two_places_at_once_is_one_vote(tmp_path: Path, eight: list[User]) -> None:
    spec = a_sign(tmp_path, "approvers: {quorum: 2}")
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            run, key = to_pause(spec, input=f"round {number}")
            told = together(pool, key, [(eight[0], True), (eight[0], True)])
            assert Counter(type(one) for one in told) == {Outcome: 1, NotAllowed: 1}, told
            assert (Vote.objects.filter(request__key=key).count(), newest(run).status) == (1, Status.AWAITING)


def test_a_race_of_many_with_a_quorum_has_one_end_that_all_are_told(
    tmp_path: Path, eight: list[User], report: Callable[[str], None]
) -> None:
    spec = a_sign(tmp_path, "approvers: {quorum: 3}")
    ends: Counter[str] = Counter()
    with ThreadPoolExecutor(8) as pool:
        for number in range(ROUNDS):
            run, key = to_pause(spec, input=f"round {number}")
            votes = [(user, place != number % 8) for place, user in enumerate(eight)]
            told = together(pool, key, votes)
            (entry,) = decisions(key)
            for one in told:
                if isinstance(one, Outcome):
                    continue
                # Who came between two others three times over may try again; all else is told how it ended.
                assert isinstance(one, AlreadyResolved | ApprovalNotFound) or one.code == "busy", one
                if one.code != "busy":
                    assert one.extra["decision"]["by"] == entry.actor
            deciding = [one for one in told if isinstance(one, Outcome) and one.votes is None]
            assert [one.decision["by"] for one in deciding] == [entry.actor]
            counted = AuditEntry.objects.filter(key=key, act="vote").count()
            assert counted == 2 if entry.outcome == "approved" else counted <= 2
            assert Run.objects.filter(resumed_from=run).count() == 1
            assert not StateRecord.objects.filter(key__contains=key).exists()
            assert ApprovalRequest.objects.get(key=key).status == "decided"
            ends[entry.outcome] += 1
            ends["busy"] += sum(isinstance(one, Refusal) and one.code == "busy" for one in told)
    assert audit.verify().first_bad is None
    report(f"{ROUNDS} rounds of seven approvals and one rejection with a quorum of three: {dict(ends)}")
