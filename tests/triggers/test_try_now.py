"""Trying a trigger at once that was put off: the act, its audit entry, its button, and what it loses to."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals import audit
from approvals.models import AuditEntry
from statestore.clock import now
from tests.conftest import Clock, People, allow
from tests.counts import count
from tests.fakes_tools import Answer
from tests.surfaces.admin import unattended
from tests.surfaces.admin.unattended import page_of
from tests.surfaces.cli.running import command
from tests.triggers.orders import Orders, an_agent, one_run_each, row
from tests.triggers.pressing import four_press
from tests.triggers.scheduling import CLOUD, move, scheduled, started
from tests.triggers.timewalk import utc
from tests.workbench import acting
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.errors import Invalid, NotPossible
from workflows.models import TriggerState
from workflows.times import rfc3339
from workflows.triggers import resets
from workflows.triggers.polls import poll_next
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)

GONE: Answer = {"status": 500, "json": {}}


@pytest.fixture
def operator(people: People) -> Actor:
    return acting(people.operator, "admin")


@pytest.fixture
def off(folder: Path, orders: Orders) -> TriggerState:
    """A poll that failed twice, and is put off."""
    an_agent(folder, orders.url)
    orders.come("a")
    orders.first = [GONE]
    assert poll_next()
    TriggerState.objects.update(failures=2)
    return row()


def test_a_poll_is_made_at_once_and_what_it_failed_at_counts_until_it_works(
    off: TriggerState, orders: Orders, operator: Actor
) -> None:
    assert off.retry_at is not None
    assert not poll_next()
    resets.try_now("orders", actor=operator, reason=" the service is back ")
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.actor, entry.run, entry.reason) == ("reset", "operator", "", "the service is back")
    assert jsontext.loads(entry.details) == {"what": "wait", "retryAt": rfc3339(off.retry_at), "failures": 2}
    assert audit.done_in_words(entry) == "wait ended"
    assert (row().failures, row().retry_at, row().error) == (2, None, off.error)
    assert poll_next()
    assert (row().failures, row().error) == (0, "")
    one_run_each("a")


def test_one_that_fails_again_is_put_off_for_longer_and_not_from_the_start(
    off: TriggerState, orders: Orders, operator: Actor
) -> None:
    orders.first = [GONE]
    resets.try_now("orders", actor=operator)
    assert poll_next()
    retry_at = row().retry_at
    assert retry_at is not None
    assert (row().failures, round((retry_at - now()).total_seconds() / 60)) == (3, 4)


def test_a_schedule_is_made_up_for_at_once(
    folder: Path, clock: Clock, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduled(folder, "0 8 * * *", model=CLOUD)
    monkeypatch.delenv("SCHEDULE_KEY", raising=False)
    move(clock, utc("2026-11-27 07:55"))
    fire_due()
    move(clock, utc("2026-11-27 08:00"))
    assert fire_due() == 0
    monkeypatch.setenv("SCHEDULE_KEY", "k")
    assert fire_due() == 0
    resets.try_now("clerk", actor=operator)
    assert fire_due() == 1
    assert started() == [utc("2026-11-27 08:00")]


def test_what_is_not_put_off_is_refused_and_leaves_no_trace(off: TriggerState, clock: Clock, operator: Actor) -> None:
    with pytest.raises(NotPossible, match="no trigger of nobody is put off"):
        resets.try_now("nobody", actor=operator)
    with pytest.raises(NotPossible, match="tried meanwhile"):
        resets.try_now("orders", actor=operator, retry_at=off.due_at)
    with pytest.raises(Invalid, match="reason"):
        resets.try_now("orders", actor=operator, reason="a\0b")
    assert row().retry_at == off.retry_at
    clock.advance(61)
    with pytest.raises(NotPossible, match="it is tried whenever it is due"):
        resets.try_now("orders", actor=operator)
    assert not AuditEntry.objects.exists()


def test_without_its_audit_entry_it_stays_put_off(
    off: TriggerState, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: object, **words: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(audit, "record", fails)
    with pytest.raises(RuntimeError):
        resets.try_now("orders", actor=operator)
    assert row().retry_at == off.retry_at


def test_of_many_who_press_at_once_one_does_it(off: TriggerState, operator: Actor) -> None:
    for _ in range(count(2, 20)):
        TriggerState.objects.update(retry_at=off.retry_at)
        outcomes = four_press(lambda: resets.try_now("orders", actor=operator))
        assert outcomes == ["done", "not_possible", "not_possible", "not_possible"]
        assert AuditEntry.objects.count() == 1
        AuditEntry.objects.all().delete()


# The button and the command -------------------------------------------------------------------------------------


@pytest.fixture
def house(folder: Path) -> Path:
    unattended.house(folder)
    return folder


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def pressed(client: Client, mark: str) -> tuple[int, str]:
    answer = client.post(page_of("orders").replace("change/", "try-now/"), {"mark": mark}, follow=True)
    return answer.status_code, " ".join(answer.content.decode().split())


def shown_mark(client: Client) -> str:
    """What the button of the page would send."""
    page = client.get(page_of("orders")).content.decode()
    return page.split('name="mark" value="')[1].split('"')[0]


def test_the_page_has_a_button_only_while_it_is_put_off(house: Path, people: People) -> None:
    client = signed_in(allow(people.operator, "approvals.view_auditentry"))
    assert "Try now" not in client.get(page_of("market")).content.decode()
    mark = shown_mark(client)
    status, page = pressed(client, mark)
    assert (status, "It is put off no longer" in page, "Try now" in page) == (200, True, False)
    assert row().retry_at is None
    assert "wait ended by operator on" in client.get("/admin/approvals/auditentry/").content.decode()
    status, page = pressed(client, mark)
    assert (status, "is put off: it is tried whenever it is due. Nothing was changed." in page) == (409, True)


def test_what_failed_again_since_the_page_was_opened_is_left(house: Path, people: People) -> None:
    client = signed_in(people.operator)
    for odd in ("", "x", "2026-13-01T00:00:00Z", "2026-11-27T00:00:00", "9" * 40):
        assert pressed(client, odd)[0] == 409, odd
    mark = shown_mark(client)
    TriggerState.objects.filter(agent_id="orders").update(retry_at=now() + timedelta(minutes=9))
    status, page = pressed(client, mark)
    assert (status, "was tried meanwhile and failed again" in page, "Try now" in page) == (409, True, True)
    assert not AuditEntry.objects.exists()


def test_looking_is_not_pressing(house: Path, people: People) -> None:
    reader = signed_in(people.approver)
    assert "Try now" not in reader.get(page_of("orders")).content.decode()
    assert pressed(reader, "")[0] == 403
    address = page_of("orders").replace("change/", "try-now/")
    assert signed_in(people.operator).get(address).status_code == 302
    assert signed_in(people.operator).post(address.replace("/triggerstate/", "/triggerstate/99")).status_code == 404
    assert row().retry_at is not None


def test_the_command_needs_no_reason_and_a_permission(off: TriggerState, people: People) -> None:
    refused = command("triggers", "try-now", "orders", "--as", "approver", "--json")
    assert (refused.code, refused.object()["code"]) == (2, "not_allowed")
    told = command("triggers", "try-now", "orders", "--as", "operator", "--json")
    assert (told.code, told.object()) == (0, {"success": True, "agent": "orders", "reset": "wait"})
    again = command("triggers", "try-now", "orders", "--as", "operator", "--reason", "r")
    assert (again.code, "it is tried whenever it is due" in again.err) == (2, True)
