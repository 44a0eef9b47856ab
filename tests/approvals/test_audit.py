"""The proof: every act of a person leaves one entry, and no change to the entries stays unseen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from approvals import audit
from approvals.expiry import expire_due
from approvals.models import AuditEntry, AuditSeal
from approvals.services import decide
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.workbench import ASKING, PAYING, PAYING_ANSWERS, acting, begin, to_pause, work, write_spec
from workflows.advance import claim
from workflows.models import Run
from workflows.recovery import recover
from workflows.runs import cancel_run, give_up_run, newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

#: What the sealer writes, and the hash itself; all else is content.
NOT_CONTENT = {"id", "own_hash", "seal_no", "previous", "sealed_hash"}


@pytest.fixture
def four(tmp_path: Path, people: People) -> None:
    """A chain of four sealed entries."""
    spec = write_spec(tmp_path, ASKING)
    for number in range(4):
        decide(to_pause(spec)[1], approved=False, reason=f"no {number}", actor=acting(people.approver))
    assert audit.seal() == 4
    assert audit.verify().first_bad is None


def numbered(number: int) -> Any:
    return AuditEntry.objects.filter(seal_no=number)


def swap() -> None:
    numbered(2).update(seal_no=99)
    numbered(3).update(seal_no=2)
    numbered(99).update(seal_no=3)


def insert(number: int) -> None:
    """An entry of our own making, hashed and linked by the rules."""
    entry = AuditEntry.objects.get(seal_no=4)
    entry.pk, entry.reason, entry.seal_no, entry.previous = None, "made up", number, entry.sealed_hash
    entry.own_hash = audit.own_hash(entry)
    entry.sealed_hash = audit.sealed_hash(number, entry.previous, entry.own_hash)
    entry.save(force_insert=True)


def insert_between() -> None:
    numbered(4).update(seal_no=5)
    numbered(5).update(previous="x")
    entry = AuditEntry.objects.get(seal_no=5)
    entry.pk, entry.reason, entry.seal_no = None, "made up", 4
    entry.own_hash = audit.own_hash(entry)
    entry.save(force_insert=True)


def replace_last() -> None:
    numbered(4).delete()
    entry = AuditEntry.objects.get(seal_no=3)
    entry.pk, entry.reason, entry.seal_no, entry.previous = None, "made up", 4, entry.sealed_hash
    entry.own_hash = audit.own_hash(entry)
    entry.sealed_hash = audit.sealed_hash(4, entry.previous, entry.own_hash)
    entry.save(force_insert=True)


def remove_end_and_mark() -> None:
    AuditEntry.objects.filter(seal_no__gt=2).delete()
    AuditSeal.objects.all().delete()


def rewrite(number: int) -> None:
    """Changed content with a fresh own hash, but the old link."""
    entry = AuditEntry.objects.get(seal_no=number)
    entry.reason = "something else"
    numbered(number).update(reason=entry.reason, own_hash=audit.own_hash(entry))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        pytest.param(lambda: numbered(2).update(reason="other"), "entry 2: its content", id="content changed"),
        pytest.param(lambda: rewrite(2), "entry 2: its link", id="content and its hash changed"),
        pytest.param(lambda: numbered(2).delete(), "entry 2 is missing", id="removed in the middle"),
        pytest.param(lambda: numbered(1).delete(), "entry 1 is missing", id="removed at the beginning"),
        pytest.param(lambda: numbered(4).delete(), "missing at its end", id="removed at the end"),
        pytest.param(remove_end_and_mark, "only 0 were sealed", id="removed at the end, with the mark"),
        pytest.param(lambda: AuditEntry.objects.all().delete(), "missing at its end", id="all removed"),
        pytest.param(swap, "entry 2: its link", id="two in another order"),
        pytest.param(lambda: insert(5), "only 4 were sealed", id="added at the end"),
        pytest.param(insert_between, "entry 4: its link", id="added in the middle"),
        pytest.param(replace_last, "entry 4: it is not the one", id="the last one replaced"),
        pytest.param(
            lambda: numbered(3).update(seal_no=None, previous="", sealed_hash=""),
            "entry 3 is missing",
            id="taken out of the chain",
        ),
    ],
)
@pytest.mark.usefixtures("four")
def test_no_change_to_a_sealed_chain_stays_unseen(harm: Callable[[], object], said: str) -> None:
    harm()
    assert said in str(audit.verify().first_bad)


def test_a_change_before_the_sealing_is_seen_too(tmp_path: Path, people: People) -> None:
    decide(to_pause(write_spec(tmp_path, ASKING))[1], approved=False, reason="no", actor=acting(people.approver))
    AuditEntry.objects.update(reason="yes")
    assert "does not match its hash" in str(audit.verify().first_bad)


@pytest.mark.usefixtures("four")
def test_the_hash_covers_every_column_of_the_content() -> None:
    entry = AuditEntry.objects.get(seal_no=1)
    whole = audit.own_hash(entry)
    fields = [field for field in AuditEntry._meta.concrete_fields if field.name not in NOT_CONTENT]
    assert len(fields) > 10
    for field in fields:
        before = getattr(entry, field.name)
        other: Any = f"{before}x"
        if field.name == "at":
            other = before.replace(microsecond=(before.microsecond + 1) % 1_000_000)
        elif not isinstance(before, str):
            other = 7 if before != 7 else 8
        setattr(entry, field.name, other)
        assert audit.own_hash(entry) != whole, field.name
        setattr(entry, field.name, before)
    assert audit.own_hash(entry) == whole


@pytest.mark.usefixtures("four")
def test_a_chain_that_grows_while_it_is_verified_is_whole(tmp_path: Path, people: People) -> None:
    spec = write_spec(tmp_path, ASKING)
    decide(to_pause(spec)[1], approved=False, actor=acting(people.approver))
    done: list[int] = []

    def seal_after_the_first_read(execute: Any, sql: str, *rest: Any) -> Any:
        found = execute(sql, *rest)
        if not done and "approvals_auditseal" in sql:
            done.append(0)
            done.append(audit.seal())
        return found

    with connection.execute_wrapper(seal_after_the_first_read):
        report = audit.verify()
    assert done == [0, 1]
    assert (report.first_bad, report.sealed) == (None, 5)


def entries() -> list[tuple[str, ...]]:
    rows = AuditEntry.objects.order_by("id")
    return [(row.act, row.outcome, row.actor, row.surface, row.reason) for row in rows]


def test_every_act_on_a_request_leaves_one_entry(tmp_path: Path, people: People, clock: Clock) -> None:
    spec = write_spec(tmp_path, ASKING)
    waiting = [to_pause(spec) for _ in range(4)]
    keys = [key for _, key in waiting]
    decide(keys[0], approved=True, reason="fine", actor=acting(people.approver, "admin"))
    decide(keys[1], approved=False, reason="no", actor=acting(people.approver, "cli"))
    cancel_run(waiting[2][0], actor=acting(people.operator), reason="twice")
    clock.advance(8 * 24 * 3600)
    assert expire_due() == 1
    assert entries() == [
        ("decide", "approved", "approver", "admin", "fine"),
        ("decide", "rejected", "approver", "cli", "no"),
        ("cancel", "cancelled", "operator", "api", "twice"),
        ("expire", "expired", "expiry", "system", ""),
    ]
    assert list(AuditEntry.objects.order_by("id").values_list("key", flat=True)) == keys
    assert not AuditEntry.objects.filter(digest="").exists()


def test_every_act_on_a_run_leaves_one_entry(
    tmp_path: Path, people: People, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAY_TOKEN", "tok")
    operator = acting(people.operator)
    with FakeTools(PAYING_ANSWERS | {"GET /invoice": {"status": 500}}) as tools:
        failed = begin(write_spec(tmp_path, PAYING, url=tools.url))
        work()
        retry_run(failed, actor=operator, reason="they are back")
    successor = newest(failed)
    cancel_run(successor, actor=operator, reason="not needed")
    lost = begin(write_spec(tmp_path, ASKING))
    Run.objects.filter(pk=lost.pk).update(takeovers=F("takeovers") + 2)
    assert claim(lost.workspace, str(lost.uuid)) is not None
    clock.advance(61)
    assert recover().interrupted == 1
    give_up_run(lost, actor=operator, reason="too old")
    assert entries() == [
        ("retry", "", "operator", "api", "they are back"),
        ("cancel", "", "operator", "api", "not needed"),
        ("give_up", "", "operator", "api", "too old"),
    ]
    retried = AuditEntry.objects.get(act="retry")
    assert (retried.run, retried.successor) == (str(failed.uuid), str(successor.uuid))
