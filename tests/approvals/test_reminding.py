"""Reminders and escalation: by the clock, once each, never after the end; after a downtime one for all missed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals import audit, eligible
from approvals.delegating import delegate
from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry, Notice
from approvals.policy import may_decide
from approvals.queue import detail
from approvals.reminding import escalate_due, remind_due
from approvals.services import decide
from tests.approvals.policies import a_sign, member
from tests.workbench import acting, begin, to_pause, work
from workflows.errors import NotAllowed
from workflows.models import Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

HOURLY = "approvers: {groups: [finance]}, remind_every: 1h, expires_in: 1d"
LATER = "approvers: {groups: [finance]}, escalate: {after: 2h, groups: [heads]}"
Ahead = Callable[[float], None]


@pytest.fixture
def asha(db: None) -> User:
    return member("asha", "finance")


@pytest.fixture
def boss(db: None) -> User:
    return member("boss", "heads")


def told(about: str = "reminder") -> list[int]:
    """Who was told, in the order of telling."""
    notices = Notice.objects.filter(about=about, channel="email").order_by("id")
    return [json.loads(notice.address)["user"] for notice in notices]


def hours(number: float) -> float:
    return number * 3600 + 1


def test_a_reminder_every_hour_to_those_who_may_decide_then(tmp_path: Path, asha: User, clock: Any) -> None:
    member("olaf")
    _, key = to_pause(a_sign(tmp_path, HOURLY))
    assert (remind_due(), told()) == (0, [])
    clock.advance(hours(1))
    assert (remind_due(), remind_due(), told()) == (1, 0, [asha.pk])
    bo = member("bo", "finance")
    clock.advance(hours(1))
    assert (remind_due(), told()) == (1, [asha.pk, asha.pk, bo.pk])
    request = ApprovalRequest.objects.get(key=key)
    assert request.remind_at == request.created_at + timedelta(hours=3)
    assert not AuditEntry.objects.exists()


def test_after_a_downtime_there_is_one_for_all_that_were_missed(tmp_path: Path, asha: User, clock: Any) -> None:
    _, key = to_pause(a_sign(tmp_path, HOURLY))
    clock.advance(hours(5.5))
    assert (remind_due(), remind_due(), told()) == (1, 0, [asha.pk])
    request = ApprovalRequest.objects.get(key=key)
    assert request.remind_at == request.created_at + timedelta(hours=6)


def test_over_a_weekend_it_is_reminded_of_and_then_ends_by_itself(tmp_path: Path, asha: User, clock: Any) -> None:
    run, key = to_pause(a_sign(tmp_path, "remind_every: 30h, expires_in: 2d, on_expire: reject"))
    clock.advance(hours(30))
    assert (remind_due(), remind_due(), told()) == (1, 0, [asha.pk])
    clock.advance(hours(30))
    assert (remind_due(), expire_due(), len(told())) == (0, 1, 1)
    assert newest(run).status == Status.REJECTED
    entry = AuditEntry.objects.get(key=key)
    assert (entry.act, entry.outcome, entry.actor, entry.surface) == ("expire", "expired", "expiry", "system")


def test_none_after_the_end(tmp_path: Path, asha: User, clock: Any) -> None:
    _, decided = to_pause(a_sign(tmp_path, HOURLY))
    decide(decided, approved=False, actor=acting(asha))
    to_pause(a_sign(tmp_path, HOURLY))
    clock.advance(hours(25))
    assert (remind_due(), told()) == (0, [])


def test_who_voted_is_reminded_no_more_and_who_stands_in_is(tmp_path: Path, asha: User, clock: Any) -> None:
    bo, dev, starter = member("bo", "finance"), member("dev"), member("starter", "finance")
    spec = a_sign(
        tmp_path, "approvers: {groups: [finance], quorum: 2, four_eyes: true, delegate: true}, remind_every: 1h"
    )
    _, key = to_pause(spec, actor=acting(starter))
    decide(key, approved=True, actor=acting(asha))
    delegate(key, to="dev", actor=acting(bo))
    clock.advance(hours(1))
    assert (remind_due(), told()) == (1, sorted([bo.pk, dev.pk]))
    request = ApprovalRequest.objects.get(key=key)
    may = {user.pk for user in User.objects.all() if may_decide(request, acting(user), approve=True).allowed}
    assert eligible.deciders(request) == may


def test_what_is_only_recorded_is_reminded_of_as_well(tmp_path: Path, asha: User, clock: Any) -> None:
    spec = a_sign(tmp_path, f"mode: record, {HOURLY}")
    begin(spec)
    work()
    clock.advance(hours(1))
    assert (remind_due(), told()) == (1, [asha.pk])


def test_from_then_on_these_groups_may_decide_also_without_a_sweep(
    tmp_path: Path, asha: User, boss: User, clock: Any
) -> None:
    run, key = to_pause(a_sign(tmp_path, LATER))
    text = "after 2 hours members of heads may decide as well"
    assert text in detail(key, acting(boss))["policyText"]
    with pytest.raises(NotAllowed, match="members of finance only"):
        decide(key, approved=True, actor=acting(boss))
    clock.advance(hours(2))
    assert detail(key, acting(boss))["may"]["rule"] == "is in the group heads, to which this was escalated"
    with pytest.raises(NotAllowed, match="members of one of finance, heads only"):
        decide(key, approved=True, actor=acting(member("olaf")))
    decide(key, approved=True, actor=acting(boss))
    assert newest(run).status == Status.QUEUED
    assert (escalate_due(), AuditEntry.objects.filter(act="escalate").count()) == (0, 0)


def test_they_are_told_once_with_an_entry(tmp_path: Path, asha: User, boss: User, clock: Any) -> None:
    _, key = to_pause(a_sign(tmp_path, LATER))
    assert escalate_due() == 0
    clock.advance(hours(2))
    assert (escalate_due(), escalate_due(), told("escalated")) == (1, 0, [boss.pk])
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.actor, entry.surface, entry.key) == ("escalate", "escalation", "system", key)
    assert json.loads(entry.details) == {"groups": ["heads"]}
    evaluated = json.loads(entry.policy)
    assert evaluated["rule"] == "it waited for 7200 s"
    assert evaluated["policy"]["escalate"] == {"after": 7200, "groups": ["heads"]}
    request = ApprovalRequest.objects.get(key=key)
    assert request.escalated_at is not None
    assert request.revision == 1
    assert audit.verify().first_bad is None


def test_a_doubt_that_the_escalation_settles_is_gone_with_it(tmp_path: Path, boss: User, clock: Any) -> None:
    Group.objects.create(name="finance")
    _, key = to_pause(a_sign(tmp_path, LATER))
    doubt = ApprovalRequest.objects.get(key=key).doubt
    assert doubt == (
        "nobody of members of finance may approve today, and 1 must; "
        "it can be approved once it is escalated, after 2 hours"
    )
    clock.advance(hours(2))
    escalate_due()
    assert ApprovalRequest.objects.get(key=key).doubt == ""


def test_where_nobody_was_narrowed_it_only_tells(tmp_path: Path, asha: User, boss: User, clock: Any) -> None:
    _, key = to_pause(a_sign(tmp_path, "escalate: {after: 2h, groups: [heads]}"))
    assert "after 2 hours members of heads are told" in detail(key, acting(asha))["policyText"]
    clock.advance(hours(2))
    assert (escalate_due(), told("escalated")) == (1, [boss.pk])
    decide(key, approved=True, actor=acting(asha))


def test_names_that_nobody_bears_mark_the_request(tmp_path: Path, asha: User) -> None:
    approvers = "approvers: {users: [asha, ghost], groups: [finance, phantoms]}"
    _, key = to_pause(a_sign(tmp_path, f"{approvers}, escalate: {{after: 2h, groups: [spooks]}}"))
    assert ApprovalRequest.objects.get(key=key).doubt == (
        'there is no user "ghost"; there is no group "phantoms"; there is no group "spooks"'
    )


def test_handing_on_is_no_way_to_a_quorum_and_the_doubt_says_so(tmp_path: Path, asha: User) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {groups: [finance], quorum: 2, delegate: true}"))
    assert "handing it on does not help" in ApprovalRequest.objects.get(key=key).doubt
