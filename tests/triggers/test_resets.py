"""What an operator sets back: the act, its audit entry, and what loses to what. Nothing is half done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from approvals import audit
from approvals.models import AuditEntry
from statestore.keys import INCIDENT, SEEN
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.conftest import Clock, People
from tests.counts import count
from tests.surfaces.cli.running import command
from tests.triggers import orders as polled
from tests.triggers import scheduling
from tests.triggers.orders import Orders, an_agent, cursor, ids
from tests.triggers.pressing import four_press
from tests.triggers.scheduling import WAITS, move, scheduled, started
from tests.triggers.test_locks import holder, lock
from tests.triggers.timewalk import utc
from tests.workbench import acting, work
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.errors import Invalid, NotPossible
from workflows.models import Run, Status, TriggerState
from workflows.triggers import locks, resets
from workflows.triggers.polls import poll_next
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(minutes=1)
FINGERPRINT = "4d1bfe70338dc11abffc390d2fec5d92f9d8e5b4e9f2a4b6c6d1c6c4b8a7c1de"


@pytest.fixture
def operator(people: People) -> Actor:
    return acting(people.operator, "admin")


def going(folder: Path, clock: Clock) -> Run:
    """A schedule of every ten minutes whose first run waits for a person, and has the lock."""
    scheduled(folder, "*/10 * * * *", workflow=WAITS)
    move(clock, utc("2026-11-27 06:55"))
    fire_due()
    move(clock, utc("2026-11-27 07:05"))
    assert fire_due() == 1
    work()
    return Run.objects.get()


def told() -> tuple[str, str, dict[str, object]]:
    """Run, reason and details of the one audit entry."""
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.actor, entry.surface, entry.spec_hash) == ("reset", "operator", "admin", "")
    return entry.run, entry.reason, jsontext.loads(entry.details)


def incident(key: str = "disk full") -> StateStore:
    store = StateStore("default", "clerk", kinds=(INCIDENT,))
    store.put(f"{INCIDENT}{key}", {"value": "secret text", "openedAt": "2026-11-27T06:00:00.000Z", "runId": "r-1"}, 600)
    return store


# The cursor ---------------------------------------------------------------------------------------------------


def test_a_reset_cursor_lets_the_poll_begin_from_the_start_at_once_and_starts_nothing_twice(
    folder: Path, orders: Orders, operator: Actor
) -> None:
    an_agent(folder, orders.url)
    orders.come("a", "b")
    assert poll_next()
    assert (orders.asked, cursor(), poll_next()) == ([""], 2, False)
    resets.reset_cursor("orders", actor=operator, reason=" the service lost two ")
    assert cursor() is None
    assert told() == ("", "the service lost two", {"what": "cursor"})
    orders.come("c")
    assert poll_next()
    assert orders.asked == ["", ""]
    assert (sorted(ids()), cursor()) == (["a", "b", "c"], 3)


def test_a_poll_under_way_cannot_write_the_old_cursor_back(folder: Path, orders: Orders, operator: Actor) -> None:
    an_agent(folder, orders.url)
    orders.come("a")
    poll_next()
    orders.first = [{"held": 30, "json": {"orders": [{"id": "late", "at": 9}]}}]
    TriggerState.objects.update(due_at=polled.row().created_at)
    polling = threading.Thread(target=poll_and_close)
    polling.start()
    while len(orders.requests) < 2:
        polling.join(0.01)
    resets.reset_cursor("orders", actor=operator, reason="again")
    orders.let_go()
    polling.join(30)
    assert not polling.is_alive()
    assert (cursor(), ids()) == (None, ["a"])
    assert poll_next()
    assert orders.asked[-1] == ""


def poll_and_close() -> None:
    poll_next()
    connection.close()


def test_a_cursor_that_moved_since_it_was_looked_at_is_left(folder: Path, orders: Orders, operator: Actor) -> None:
    an_agent(folder, orders.url)
    orders.come("a")
    poll_next()
    version = StateRecord.objects.get(key="cursor:poll").version
    orders.come("b")
    TriggerState.objects.update(due_at=polled.row().created_at)
    poll_next()
    before = polled.row()
    with pytest.raises(NotPossible, match="moved meanwhile"):
        resets.reset_cursor("orders", actor=operator, reason="again", version=version)
    assert (cursor(), polled.row().lease_token, polled.row().due_at) == (2, before.lease_token, before.due_at)
    assert not AuditEntry.objects.exists()


# The lock -----------------------------------------------------------------------------------------------------


def test_a_freed_lock_lets_the_next_due_time_start_and_the_run_that_had_it_goes_on(
    folder: Path, clock: Clock, operator: Actor
) -> None:
    run = going(folder, clock)
    assert holder() == str(run.uuid)
    resets.free_lock("clerk", actor=operator, reason="it hangs", run=str(run.uuid))
    assert lock() is None
    assert told() == (str(run.uuid), "it hangs", {"what": "lock", "due": "2026-11-27T07:00:00.000Z"})
    fire_due()  # the scheduler does not put it again
    assert (lock(), scheduling.row().lock_freed) == (None, True)
    move(clock, utc("2026-11-27 07:11"))
    assert fire_due() == 1
    assert started() == [utc("2026-11-27 07:00"), utc("2026-11-27 07:10")]
    assert (scheduling.row().skipped, scheduling.row().lock_freed) == (0, False)
    assert holder() == str(Run.objects.latest("id").uuid)
    run.refresh_from_db()
    assert run.status == Status.AWAITING


def test_a_lock_that_has_another_holder_by_now_is_left(folder: Path, clock: Clock, operator: Actor) -> None:
    run = going(folder, clock)
    with pytest.raises(NotPossible, match=f"run {run.uuid} holds the lock"):
        resets.free_lock("clerk", actor=operator, reason="it hangs", run="another")
    assert (holder(), scheduling.row().lock_freed, AuditEntry.objects.count()) == (str(run.uuid), False, 0)


def test_a_lock_whose_entry_lapsed_can_be_freed(folder: Path, clock: Clock, operator: Actor) -> None:
    run = going(folder, clock)
    StateRecord.objects.filter(key=locks.KEY).delete()
    assert resets.free_lock("clerk", actor=operator, reason="it hangs").run == str(run.uuid)
    fire_due()
    assert lock() is None


def test_a_renewal_between_reading_and_freeing_is_no_obstacle(
    folder: Path, clock: Clock, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    going(folder, clock)
    delete = StateStore.delete
    renewed: list[bool] = []

    def renew_first(self: StateStore, key: str, version: int | None = None) -> bool:
        if not renewed:
            renewed.append(self.renew(key, version or 0, 600))
        return delete(self, key, version)

    monkeypatch.setattr(StateStore, "delete", renew_first)
    resets.free_lock("clerk", actor=operator, reason="it hangs")
    assert (renewed, lock()) == ([True], None)


# Incidents and seen items ---------------------------------------------------------------------------------------


def test_an_incident_is_closed_by_hand_with_its_key_and_no_value_in_the_audit(operator: Actor) -> None:
    store = incident()
    resets.close_incident("clerk", "disk full", actor=operator, reason="mended")
    assert store.list(INCIDENT) == ()
    details = {"what": "incident", "key": "disk full", "openedAt": "2026-11-27T06:00:00.000Z"}
    assert told() == ("r-1", "mended", details)


def test_an_incident_that_was_opened_anew_since_it_was_looked_at_stays(operator: Actor) -> None:
    store = incident()
    found = store.versioned(f"{INCIDENT}disk full")
    assert found is not None
    store.delete(f"{INCIDENT}disk full")
    incident()
    with pytest.raises(NotPossible, match="another one opened meanwhile"):
        resets.close_incident("clerk", "disk full", actor=operator, reason="mended", version=found.version)
    assert (store.list(INCIDENT), AuditEntry.objects.count()) == ((f"{INCIDENT}disk full",), 0)


def test_a_forgotten_item_starts_a_run_again_and_no_other_does(folder: Path, orders: Orders, operator: Actor) -> None:
    an_agent(folder, orders.url)
    orders.come("a", "b")
    poll_next()
    first = StateRecord.objects.filter(key__gt=SEEN, key__lt="seen;").order_by("id")[0]
    resets.forget_seen("orders", first.key.removeprefix(SEEN), actor=operator, reason="its run was lost")
    assert told()[2] == {"what": "seen", "fingerprint": first.key.removeprefix(SEEN)}
    assert told()[0] == str(Run.objects.order_by("id")[0].uuid)
    AuditEntry.objects.all().delete()
    resets.reset_cursor("orders", actor=operator, reason="so that it is asked for again")
    poll_next()
    assert ids() == ["a", "b", "a"]


ACTS: dict[str, Callable[..., object]] = {
    "cursor": lambda **words: resets.reset_cursor("clerk", **words),
    "lock": lambda **words: resets.free_lock("clerk", **words),
    "incident": lambda **words: resets.close_incident("clerk", "k", **words),
    "seen": lambda **words: resets.forget_seen("clerk", FINGERPRINT, **words),
}


def test_what_is_not_there_is_refused_with_a_sentence_and_leaves_no_trace(operator: Actor) -> None:
    for act in ACTS.values():
        with pytest.raises(NotPossible) as refusal:
            act(actor=operator, reason="why not")
        assert len(str(refusal.value).split()) > 5
    assert not AuditEntry.objects.exists()


def test_a_reason_is_needed(operator: Actor) -> None:
    for act in ACTS.values():
        for reason in ("", " \n", "a\0b"):
            with pytest.raises(Invalid, match="reason"):
                act(actor=operator, reason=reason)


def test_what_names_no_item_or_no_key_is_refused(operator: Actor) -> None:
    for mark in ("", "abc", FINGERPRINT.upper(), FINGERPRINT + "0"):
        with pytest.raises(Invalid, match="SHA-256"):
            resets.forget_seen("clerk", mark, actor=operator, reason="r")
    for key in ("", "x" * 401, "a\0"):
        with pytest.raises(Invalid):
            resets.close_incident("clerk", key, actor=operator, reason="r")


def test_without_its_audit_entry_nothing_is_set_back(operator: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, key in (("cursor:", "poll"), ("lock:", "schedule"), ("incident:", "k"), ("seen:", FINGERPRINT)):
        value = {"run": "r", "due": "d", "runId": "r", "openedAt": "o"}
        StateStore("default", "clerk", kinds=(kind,)).put(kind + key, value)

    def fails(*given: object, **words: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(audit, "record", fails)
    for act in ACTS.values():
        with pytest.raises(RuntimeError):
            act(actor=operator, reason="r")
    assert StateRecord.objects.count() == 4


def test_of_many_who_press_at_once_one_sets_back_and_the_others_are_told(operator: Actor) -> None:
    for _ in range(count(2, 20)):
        incident()
        outcomes = four_press(lambda: resets.close_incident("clerk", "disk full", actor=operator, reason="mended"))
        assert outcomes == ["done", "not_possible", "not_possible", "not_possible"]
        told()
        AuditEntry.objects.all().delete()


def test_the_audit_hands_it_out_and_its_chain_holds(operator: Actor) -> None:
    incident()
    resets.close_incident("clerk", "disk full", actor=operator, reason="mended")
    assert audit.seal() == 1
    line = command("audit", "export").object()
    assert (line["act"], line["run"], line["spec_hash"], line["agent_id"]) == ("reset", "r-1", "", "clerk")
    assert jsontext.loads(line["details"])["key"] == "disk full"
    assert command("audit", "verify").code == 0
