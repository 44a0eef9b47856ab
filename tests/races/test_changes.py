"""Edits and rebinding in the same instant as decisions, votes, each other and the expiry: one order, nothing lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from approvals import audit
from approvals.editing import edit_request
from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry, Vote
from approvals.rebinding import rebind
from approvals.records import fits, peek
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.editables import ANSWERS, a_payment
from tests.conftest import allow
from tests.counts import count
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause
from workflows.codec import load_decision
from workflows.errors import Refusal
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = count(6, 60)
AMOUNT = "action.body.json.amount"
#: What a loser of a race may be told: decided or expired meanwhile, changed meanwhile, or too many at once.
FAIR = {"already_resolved", "approval_not_found", "action_changed", "spec_changed", "busy", "not_possible"}


@pytest.fixture
def paying(tools: FakeTools, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    tools.script = dict(ANSWERS)
    monkeypatch.setenv("PAY_HOST", tools.url)
    return tools


@pytest.fixture
def olga(eight: list[User]) -> User:
    return allow(User.objects.create(username="olga"), "approvals.rebind")


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """What each act gave, or the code of its refusal."""
    barrier = threading.Barrier(len(acts))

    def one(act: Callable[[], Any]) -> Any:
        barrier.wait(30)
        try:
            return act()
        except Refusal as refusal:
            return refusal.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        told = list(pool.map(one, acts))
    assert not [one for one in told if isinstance(one, str) and one not in FAIR], told
    return told


def consistent(run: Run, key: str) -> None:
    """Row, record and run agree, whatever happened."""
    request = ApprovalRequest.objects.get(key=key)
    record = peek(request)
    assert (record is None) == (request.status != "open")
    if record is not None:
        present = Run.objects.get(pk=run.pk)
        assert fits(request, record)
        assert (present.status, present.spec_hash, present.step_index) == (
            Status.AWAITING,
            record["spec_hash"],
            record["step_index"],
        )
    assert Run.objects.filter(resumed_from=run).count() == (0 if record is not None else 1)


def test_an_edit_and_an_approval_of_what_was_seen(
    tmp_path: Path, paying: FakeTools, eight: list[User], report: Callable[[str], None]
) -> None:
    spec, ends = a_payment(tmp_path, paying.url), Counter[str]()
    for _ in range(ROUNDS):
        run, key = to_pause(spec)
        seen = ApprovalRequest.objects.get(key=key).digest
        edited, decided = at_once(
            partial(edit_request, key, edits={AMOUNT: 7}, actor=acting(eight[0])),
            partial(decide, key, approved=True, actor=acting(eight[1]), digest=seen),
        )
        consistent(run, key)
        # Whoever approved what was seen approved that, and the edit came too late; or the other way round.
        if isinstance(decided, str):
            assert decided == "action_changed"
            assert edited.digest != seen
            ends["edited"] += 1
        else:
            assert isinstance(edited, str)
            decision = load_decision(newest(run).decision)
            assert decision is not None
            assert (decision.digest, decision.edits) == (seen, {})
            ends["approved"] += 1
    report(f"{ROUNDS} rounds of an edit against an approval: {dict(ends)}")


def test_two_edits_at_once_both_stand(tmp_path: Path, paying: FakeTools, eight: list[User]) -> None:
    spec = a_payment(tmp_path, paying.url)
    for _ in range(ROUNDS):
        run, key = to_pause(spec)
        told = at_once(
            partial(edit_request, key, edits={AMOUNT: 7}, actor=acting(eight[0])),
            partial(edit_request, key, edits={"draft.who": "Ben"}, actor=acting(eight[1])),
        )
        assert not any(isinstance(one, str) for one in told), told
        record = peek(ApprovalRequest.objects.get(key=key))
        assert record is not None
        assert record["edits"] == {AMOUNT: 7, "draft.who": "Ben"}
        assert record["action"]["body"]["json"] == {"amount": 7, "to": "for Ben", "rows": [1, "two"]}
        consistent(run, key)


def test_a_vote_never_counts_for_what_an_edit_made_of_it(tmp_path: Path, paying: FakeTools, eight: list[User]) -> None:
    spec = a_payment(tmp_path, paying.url, "approvers: {quorum: 2}")
    for _ in range(ROUNDS):
        run, key = to_pause(spec)
        seen = ApprovalRequest.objects.get(key=key).digest
        decide(key, approved=True, actor=acting(eight[0]), digest=seen)
        edited, voted = at_once(
            partial(edit_request, key, edits={AMOUNT: 7}, actor=acting(eight[2])),
            partial(decide, key, approved=True, actor=acting(eight[1]), digest=seen),
        )
        consistent(run, key)
        if isinstance(voted, str):
            assert (voted, Vote.objects.filter(request__key=key).count()) == ("action_changed", 0)
        else:
            assert isinstance(edited, str)


def changed(spec: SpecFile, number: int) -> None:
    spec.path.write_text(spec.text.replace("[1, two]", f"[1, {number}]"), encoding="utf-8")


def test_a_rebind_and_an_approval_never_mix(
    tmp_path: Path, paying: FakeTools, eight: list[User], olga: User, report: Callable[[str], None]
) -> None:
    """The file is restored between the two looks at it, so that either may win; the policy of the winner counts."""
    spec, ends = a_payment(tmp_path, paying.url), Counter[str]()
    for number in range(ROUNDS):
        spec.path.write_text(spec.text, encoding="utf-8")
        run, key = to_pause(spec)
        changed(spec, number)
        bound, decided, rejected = at_once(
            partial(rebind, key, actor=acting(olga), reason="new"),
            partial(decide, key, approved=True, actor=acting(eight[0])),
            partial(decide, key, approved=False, actor=acting(eight[1])),
        )
        consistent(run, key)
        successor = newest(run)
        decision = load_decision(successor.decision)
        if decision is not None and decision.approved:
            assert not isinstance(bound, str), "approved under a spec that was not bound"
            assert (decision.digest, successor.spec_hash) == (bound.digest, bound.spec_hash)
        ends[f"{decided if isinstance(decided, str) else 'approved'}"] += 1
        assert isinstance(decided, str) or isinstance(rejected, str)
    assert audit.verify().first_bad is None
    report(f"{ROUNDS} rounds of a rebind, an approval and a rejection: {dict(ends)}")


def test_a_rebind_and_the_expiry(tmp_path: Path, paying: FakeTools, olga: User) -> None:
    spec = a_payment(tmp_path, paying.url, "expires_in: 1s")
    for number in range(count(3, 10)):  # each waits for the shortest lifetime there is
        spec.path.write_text(spec.text, encoding="utf-8")
        run, key = to_pause(spec)
        changed(spec, number)
        end = ApprovalRequest.objects.get(key=key).expires_at.timestamp()
        time.sleep(max(0.0, end - time.time() - 0.01))
        bound, _ = at_once(
            partial(rebind, key, actor=acting(olga), reason="new"),
            expire_due,
        )
        while StateRecord.objects.filter(key__contains=key).exists():
            expire_due()
        run.refresh_from_db()
        assert run.status == Status.EXPIRED
        assert AuditEntry.objects.filter(key=key, act="rebind").count() == (0 if isinstance(bound, str) else 1)
        assert AuditEntry.objects.filter(key=key, act="expire").count() == 1
