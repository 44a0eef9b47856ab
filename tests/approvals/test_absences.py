"""While somebody is away, a substitute decides what lets itself be handed on: one's own, one at a time, one step."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import absences, audit
from approvals.absences import end_absence, set_absence
from approvals.models import Absence, AuditEntry
from approvals.queue import detail
from approvals.services import decide
from statestore.clock import now
from tests.approvals.policies import a_sign, member
from tests.workbench import acting, to_pause
from workflows.errors import Invalid, NotAllowed, NotPossible
from workflows.models import Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)


@pytest.fixture
def asha(db: None) -> User:
    return member("asha", "finance")


@pytest.fixture
def dev(db: None) -> User:
    return member("dev")


def may_hand(folder: Path, more: str = "") -> SpecFile:
    return a_sign(folder, f"approvers: {{groups: [finance], delegate: true{more}}}")


def away(who: User, substitute: str = "dev", starts: timedelta = -DAY, ends: timedelta = DAY, **more: Any) -> Absence:
    moment = now()
    actor = acting(who, "admin")
    return set_absence(actor, substitute=substitute, starts_at=moment + starts, ends_at=moment + ends, **more)


def may(key: str, user: User) -> dict[str, Any]:
    told: dict[str, Any] = detail(key, acting(user))["may"]
    return told


def test_the_substitute_decides_what_lets_itself_be_handed_on(tmp_path: Path, asha: User, dev: User) -> None:
    _, closed = to_pause(a_sign(tmp_path, "approvers: {groups: [finance]}"))
    run, key = to_pause(may_hand(tmp_path))
    assert may(key, dev)["decide"] is False
    away(asha)
    assert may(key, dev)["rule"] == "stands in for asha, who is away"
    assert may(key, dev)["delegate"] is False
    assert may(closed, dev)["decide"] is False
    decide(key, approved=True, actor=acting(dev))
    assert newest(run).status == Status.QUEUED
    first, last = AuditEntry.objects.order_by("id")
    assert (first.act, first.actor, first.surface, first.run) == ("away", "asha", "admin", "")
    assert json.loads(first.details) | {"starts_at": "", "ends_at": ""} == {
        "user": "asha",
        "substitute": "dev",
        "starts_at": "",
        "ends_at": "",
    }
    assert json.loads(last.policy)["rule"] == "stands in for asha, who is away"
    assert (audit.verify().first_bad, audit.seal()) == (None, 2)


def test_it_holds_from_its_beginning_to_its_end(tmp_path: Path, asha: User, dev: User) -> None:
    _, key = to_pause(may_hand(tmp_path, ", quorum: 2"))
    later = away(asha, starts=DAY, ends=2 * DAY)
    assert may(key, dev)["decide"] is False
    end_absence(acting(asha), later.pk)
    present = away(asha)
    decide(key, approved=True, actor=acting(dev))
    assert len(detail(key, acting(asha))["votes"]) == 1
    end_absence(acting(asha), present.pk)
    assert may(key, dev)["decide"] is False
    # Whose place it was may vote now: the substitute's approval counts no more.
    assert detail(key, acting(asha))["votes"] == []
    assert may(key, asha)["approve"] is True
    assert list(AuditEntry.objects.order_by("id").values_list("act", flat=True)) == [
        "away",
        "back",
        "away",
        "vote",
        "back",
    ]


def test_both_count_as_one_person(tmp_path: Path, asha: User, dev: User) -> None:
    _, key = to_pause(may_hand(tmp_path, ", quorum: 2"))
    away(asha)
    decide(key, approved=True, actor=acting(dev))
    with pytest.raises(NotAllowed, match="you count as one person"):
        decide(key, approved=True, actor=acting(asha))
    assert decide(key, approved=True, actor=acting(member("bo", "finance"))).votes is None


def test_a_substitute_who_is_away_passes_nothing_on(tmp_path: Path, asha: User, dev: User) -> None:
    eva = member("eva")
    _, key = to_pause(may_hand(tmp_path))
    away(asha)
    away(dev, "eva")
    assert may(key, eva)["decide"] is False
    assert may(key, dev)["decide"] is True


def test_it_is_no_way_round_four_eyes(tmp_path: Path, asha: User, dev: User) -> None:
    _, key = to_pause(may_hand(tmp_path, ", four_eyes: true"), actor=acting(asha))
    away(asha)
    with pytest.raises(NotAllowed, match="you stand in for whoever started the run"):
        decide(key, approved=True, actor=acting(dev))


def test_who_and_when(asha: User, dev: User) -> None:
    visitor = User.objects.create(username="visitor")
    with pytest.raises(NotAllowed, match=r"approvals\.decide is needed"):
        away(visitor)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("substitute", {"substitute": "asha"}),
        ("substitute", {"substitute": "visitor"}),
        ("substitute", {"substitute": "nobody-here"}),
        ("ends_at", {"starts": DAY, "ends": DAY}),
        ("ends_at", {"starts": -2 * DAY, "ends": -DAY}),
    ]
    for path, wrong in cases:
        with pytest.raises(Invalid) as refused:
            away(asha, **wrong)
        assert refused.value.extra["errors"][0]["path"] == path
    assert (Absence.objects.count(), AuditEntry.objects.count()) == (0, 0)


def test_one_at_a_time(asha: User, dev: User) -> None:
    away(asha, starts=DAY, ends=3 * DAY)
    for starts, ends in ((0, 2), (2, 4), (1, 3), (0, 9), (1.5, 2)):
        with pytest.raises(Invalid, match="absence already, with dev"):
            away(asha, starts=starts * DAY, ends=ends * DAY)
    away(asha, starts=4 * DAY, ends=5 * DAY)
    away(dev, "asha", starts=DAY, ends=3 * DAY)
    assert [absence.substitute for absence in absences.mine(asha.pk)] == [dev, dev]
    assert [absence.user for absence in absences.standing_in(asha.pk)] == [dev]


def test_for_somebody_else_only_a_superuser(asha: User, dev: User) -> None:
    root = member("root", superuser=True)
    with pytest.raises(NotAllowed, match="only a superuser"):
        away(dev, "dev", user="asha")
    theirs = away(root, user="asha")
    assert theirs.user == asha
    entry = AuditEntry.objects.get()
    assert (entry.actor, json.loads(entry.details)["user"]) == ("root", "asha")
    for absence_id in (theirs.pk, 999_999):
        with pytest.raises(NotAllowed, match="no absence of yours"):
            end_absence(acting(dev), absence_id)
    end_absence(acting(root), theirs.pk)
    with pytest.raises(NotPossible, match="over already"):
        end_absence(acting(asha), theirs.pk)
    assert list(AuditEntry.objects.order_by("id").values_list("act", flat=True)) == ["away", "back"]
