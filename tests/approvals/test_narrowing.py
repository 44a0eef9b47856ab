"""The filters of the queue: the same answer on every database, and the policy's own answer where they ask for it."""

from __future__ import annotations

import importlib
import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection

from approvals.counting import bounded, bounded_count, in_words
from approvals.models import Absence, ApprovalRequest, Audience, Delegation, Vote
from approvals.narrowing import Narrowing, narrowed, waits_for
from approvals.policy import Person
from approvals.queue import open_requests
from statestore.clock import now
from tests.approvals.policies import a_sign, member
from tests.conftest import Clock, People
from tests.surfaces.queued import many
from tests.workbench import acting, to_pause

pytestmark = pytest.mark.django_db(transaction=True)

POLICIES = {
    "anybody": "require_reason: never",
    "finance": "approvers: {groups: [finance]}",
    "ana": "approvers: {users: [ana]}",
    "either": "approvers: {users: [bo], groups: [finance, legal]}",
    "handed": "approvers: {groups: [finance], delegate: true}",
    "later": "approvers: {users: [bo]}, escalate: {after: 1h, groups: [legal]}",
    "two": "approvers: {quorum: 2}",
}


def _opened(folder: Path) -> dict[str, ApprovalRequest]:
    keys = {name: to_pause(a_sign(folder, policy))[1] for name, policy in POLICIES.items()}
    return {name: ApprovalRequest.objects.get(key=key) for name, key in keys.items()}


def _mine(user: User) -> set[int]:
    fresh = User.objects.get(pk=user.pk)
    return set(waits_for(open_requests(), fresh).values_list("pk", flat=True))


def _by_policy(user: User) -> set[int]:
    person = Person(acting(User.objects.get(pk=user.pk)))
    return {row.pk for row in open_requests().select_related("run") if person.may(row).allowed}


def test_what_waits_for_somebody_is_what_the_policy_lets_them_decide(
    tmp_path: Path, people: People, clock: Clock
) -> None:
    asked = _opened(tmp_path)
    ana, bo, cy = member("ana"), member("bo", "finance"), member("cy", "legal")
    everybody = [ana, bo, cy, people.approver, people.stranger, people.operator]

    def check() -> None:
        for user in everybody:
            if not User.objects.get(pk=user.pk).is_active:
                assert _mine(user) == set()
                continue
            assert _mine(user) == _by_policy(user), user.username

    check()
    assert asked["finance"].pk in _mine(bo)
    assert asked["finance"].pk not in _mine(cy)
    assert _mine(people.stranger) == set()
    Delegation.objects.create(
        request=asked["handed"], from_user_id=bo.pk, from_label="bo", to_user_id=ana.pk, to_label="ana", at=now()
    )
    check()
    assert asked["handed"].pk in _mine(ana)
    away = {"starts_at": now() - timedelta(hours=1), "ends_at": now() + timedelta(days=1), "created_at": now()}
    Absence.objects.create(user=bo, substitute=cy, **away)
    check()
    assert asked["handed"].pk in _mine(cy)
    assert asked["ana"].pk not in _mine(cy)
    clock.advance(3700)
    check()
    assert asked["later"].pk in _mine(cy)
    User.objects.filter(pk=bo.pk).update(is_active=False)
    check()
    assert asked["handed"].pk not in _mine(ana)


def test_what_somebody_approved_already_waits_for_others(tmp_path: Path, people: People) -> None:
    asked = _opened(tmp_path)["two"]
    given = {"request": asked, "digest": asked.digest, "surface": "api", "at": now(), "label": "x"}
    mine = Vote.objects.create(user_id=people.approver.pk, answers='{"a":1}', **given)
    assert asked.pk not in _mine(people.approver)
    Vote.objects.create(user_id=people.operator.pk, answers='{"a":2}', **given)
    assert asked.pk in _mine(people.approver), "other answers came after it"
    mine.delete()
    ApprovalRequest.objects.filter(pk=asked.pk).update(digest="1:other")
    assert asked.pk in _mine(people.approver)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PAY ", True),
        ("rent 100%", True),
        ("100_", False),
        ("MÜLLER", False),
        ("Müller", True),
        ("CLERK", True),
        ("sign", True),
        ("\\", True),
        ("clerksign", False),
        ("'; --", False),
        ("  müller", True),
    ],
)
def test_words_are_found_in_either_case_of_a_to_z_and_otherwise_as_they_are(
    text: str, found: bool, tmp_path: Path
) -> None:
    _, key = to_pause(a_sign(tmp_path, "require_reason: never"))
    ApprovalRequest.objects.update(reason="Pay rent 100% to Müller \\ now?" + "x" * 2000 + "behind")
    assert narrowed(open_requests(), Narrowing(q=text)).exists() is found
    assert not narrowed(open_requests(), Narrowing(q="behind")).exists()
    assert narrowed(open_requests(), Narrowing(q=f" {key.upper()} ")).exists()


def test_age_and_end_are_measured_by_the_database(tmp_path: Path, clock: Clock) -> None:
    to_pause(a_sign(tmp_path, "expires_in: 3h"))

    def found(by: Narrowing) -> bool:
        return narrowed(open_requests(), by).exists()

    older, soon = Narrowing(older_than=timedelta(hours=1)), Narrowing(expires_within=timedelta(hours=1))
    assert not found(older)
    assert not found(soon)
    clock.advance(2.5 * 3600)
    assert found(older)
    assert found(soon)
    assert not found(Narrowing(older_than=timedelta(hours=4)))
    clock.advance(3600)
    assert not found(older), "what has expired does not wait"


def test_counts_stop_at_a_thousand_in_one_query(tmp_path: Path, django_assert_num_queries: object) -> None:
    run, _ = to_pause(a_sign(tmp_path, "require_reason: never"))
    assert bounded_count(open_requests()) == 1
    seven = [request.key for request in many(run, 1200)[:7]]
    with django_assert_num_queries(1):  # type: ignore[operator]
        found = bounded(
            {"all": open_requests(), "none": open_requests().none(), "some": open_requests().filter(key__in=seven)}
        )
    assert found == {"all": 1001, "none": 0, "some": 7}
    assert [in_words(count) for count in (0, 999, 1000, 1001)] == ["0", "999", "1,000", "1,000+"]
    assert [in_words(count, least=True) for count in (0, 12, 1001)] == ["0", "12+", "1,000+"]


def test_requests_that_were_open_before_get_their_audience(tmp_path: Path) -> None:
    asked = _opened(tmp_path)
    before = set(Audience.objects.values_list("request", "kind", "name"))
    Audience.objects.all().delete()
    assert asked["finance"].pk in _mine(member("guest")), "without rows it is taken for everybody's"
    migration = importlib.import_module("approvals.migrations.0004_audience")
    with connection.schema_editor() as editor:
        migration.fill(apps, editor)
        migration.fill(apps, editor)
    assert set(Audience.objects.values_list("request", "kind", "name")) == before
    assert json.loads(asked["later"].policy)["escalate"]["groups"] == ["legal"]
    assert (asked["later"].pk, "later", "legal") in before
    assert not asked["anybody"].audience.exists(), "a pause under a plain policy writes no row for it"
