"""Triggers as pages: when each is due, what it did, what keeps it; and the command that tells the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from statestore.clock import now
from statestore.models import StateRecord
from tests.conftest import Clock, People
from tests.surfaces.admin import unattended
from tests.surfaces.admin.conftest import RUNS, run_url
from tests.surfaces.admin.unattended import FILES, STORE, TRIGGERS, page_of
from tests.surfaces.cli.running import command
from tests.triggers.scheduling import move, scheduled
from tests.workbench import STARTER, begin
from workflows.models import Run, TriggerState
from workflows.registry import registry
from workflows.runs import cancel_run
from workflows.times import rfc3339
from workflows.triggers import state
from workflows.triggers.standing import standings

pytestmark = pytest.mark.django_db(transaction=True)

SignedIn = Callable[[User], Client]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The served specs."""
    with unattended.served(tmp_path):
        yield tmp_path


@pytest.fixture
def house(folder: Path) -> Run:
    return unattended.house(folder)


@pytest.fixture
def operator(people: People, signed_in: SignedIn) -> Client:
    return signed_in(people.operator)


def text(client: Client, address: str) -> str:
    """What the page says, in one line."""
    answer = client.get(address)
    assert answer.status_code == 200, address
    return " ".join(answer.content.decode().split())


def test_the_list_tells_when_each_is_due_and_what_it_did(operator: Client, house: Run) -> None:
    rows = {row["agent"]: row for row in operator.get(TRIGGERS).context["rows"]}
    assert [badge.text for badge in rows["market"]["badges"]] == ["run going"]
    assert [badge.text for badge in rows["orders"]["badges"]] == ["failed 3 times"]
    page = text(operator, TRIGGERS)
    assert "At 08:00 on Monday through Friday (0 8 * * mon-fri), Asia/Singapore" in page
    assert "08:00:00 +08 (Asia/Singapore)" in page
    assert "every 1m with list_orders" in page
    assert "webhook, signed (HOOK_SECRET), each delivery once (for 12h)" in page
    assert run_url(house) in page
    assert "1 spec file is broken" in page


def test_the_page_of_a_schedule_tells_the_next_time_in_its_zone_and_who_has_the_lock(
    operator: Client, house: Run
) -> None:
    page = text(operator, page_of("market"))
    due = TriggerState.objects.get(agent_id="market").due_at
    assert f"{due:%Y-%m-%d} 00:00:00 UTC, that is {due:%Y-%m-%d} 08:00:00 +08 (Asia/Singapore)" in page
    assert f'Held by run <span class="k-id">{house.uuid}</span> until ' in page
    assert "Free the lock…" in page
    assert "<dt>Skipped</dt><dd>2, last " in page


def test_the_page_of_a_poll_tells_the_failure_the_next_try_and_the_cursor(operator: Client, house: Run) -> None:
    page = text(operator, page_of("orders"))
    retry = TriggerState.objects.get(agent_id="orders").retry_at
    assert "It failed 3 times in a row" in page
    assert "503 Service Unavailable. The position did not move; it is polled again. Next try: " in page
    assert retry is not None
    assert f"<dt>Next</dt><dd>{retry:%Y-%m-%d %H:%M:%S} UTC</dd>" in page
    assert "7 items, 2 new" in page
    assert "2026-11-27T06:00:00Z" in page
    assert "Reset the cursor…" in page


def test_who_may_only_look_finds_nothing_to_press(people: People, signed_in: SignedIn, house: Run) -> None:
    reader = signed_in(people.approver)
    for address in (page_of("market"), page_of("orders"), STORE + "?kind=locks"):
        assert "/reset/" not in text(reader, address)


def test_without_the_permission_nothing_is_shown_and_nothing_is_told(
    people: People, signed_in: SignedIn, house: Run
) -> None:
    stranger = signed_in(people.stranger)
    lock = StateRecord.objects.get(key="lock:schedule").pk
    for address in (TRIGGERS, FILES, STORE, page_of("market"), unattended.reset_url(lock), unattended.reset_url(999)):
        assert stranger.get(address).status_code == 403, address
    assert "While nobody looks" not in text(stranger, "/admin/")
    assert "While nobody looks" in text(signed_in(people.approver), "/admin/")
    assert Client().get(TRIGGERS).status_code == 302


def test_what_keeps_a_trigger_from_starting_runs_is_said(operator: Client, folder: Path, clock: Clock) -> None:
    unattended.house(folder)
    path = folder / "market.yaml"
    good = path.read_text()
    path.write_text(good.replace("type: approval", "type: dance"))
    assert "Its file market.yaml is broken, so nothing is started." in text(operator, page_of("market"))
    assert "Next</dt><dd>not known here" in text(operator, page_of("market"))
    path.rename(folder / "market.txt")
    assert "No file that this process serves has it" in text(operator, page_of("market"))
    path.write_text(unattended.WEBHOOK.replace("id: deliveries", "id: market"))
    assert "another trigger now: webhook, signed" in text(operator, page_of("market"))
    path.write_text(good.replace("0 8", "0 9"))
    assert "says another time than the scheduler knows" in text(operator, page_of("market"))
    state.sync(registry().files())
    assert "At 09:00" in text(operator, page_of("market"))
    cancel_run(Run.objects.get(), actor=STARTER)
    move(clock, TriggerState.objects.get(agent_id="market").due_at + timedelta(minutes=9))
    assert "Its time has come and nobody has started it" in text(operator, page_of("market"))
    assert text(operator, TRIGGERS).count("overdue: is a scheduler running?") == 1, "the poll alone"
    clock.advance(120)
    assert "It is overdue: its time came at" in text(operator, page_of("market"))
    assert text(operator, TRIGGERS).count("overdue: is a scheduler running?") == 2
    assert "overdue: is a scheduler running?" in command("triggers", "show", "market", *OPERATOR).out


def test_a_served_trigger_that_no_scheduler_looked_at_is_listed(operator: Client, folder: Path) -> None:
    assert "No served spec has a trigger." in text(operator, TRIGGERS)
    scheduled(folder, "0 8 * * *")
    page = text(operator, TRIGGERS)
    assert "clerk" in page
    assert "starts nothing" in page


def test_a_poll_that_is_being_made_is_told(operator: Client, house: Run) -> None:
    TriggerState.objects.filter(agent_id="orders").update(lease_until=now() + timedelta(minutes=1), failures=0)
    assert ">polling<" in text(operator, TRIGGERS)
    assert "Being polled" in text(operator, page_of("orders"))


def test_more_triggers_and_more_entries_ask_no_more_of_the_database(operator: Client, folder: Path, house: Run) -> None:
    def asked() -> dict[str, int]:
        counts = {}
        for address in (TRIGGERS, page_of("market"), FILES, RUNS, *(f"{STORE}?kind={kind}" for kind in KINDS)):
            with CaptureQueriesContext(connection) as queries:
                assert operator.get(address).status_code == 200
            words = {query["sql"].lstrip("(").split(None, 1)[0].upper() for query in queries.captured_queries}
            assert words == {"SELECT"}, address
            counts[address] = len(queries)
        return counts

    fill(1, house)
    few = asked()
    for number in range(8):
        scheduled(folder, "0 8 * * *", agent_id=f"more-{number}")
        unattended.plain(folder, f"plain-{number}")
        (folder / f"hook-{number}.yaml").write_text(unattended.WEBHOOK.replace("deliveries", f"hook-{number}"))
    state.sync(registry().files())
    fill(30, house)
    assert asked() == few
    assert max(few.values()) < 20, few


def test_nothing_of_what_runs_read_and_made_is_loaded(operator: Client, people: People, house: Run) -> None:
    begin(registry().find("deliveries"))
    with CaptureQueriesContext(connection) as queries:
        assert operator.get(TRIGGERS).status_code == operator.get(page_of("market")).status_code == 200
        assert command("triggers", "list", "--as", "operator", "--json").code == 0
    loaded = [query["sql"] for query in queries.captured_queries if '"workflows_run"."uuid"' in query["sql"]]
    assert len(loaded) >= 5
    data = ("input", "trigger", "outputs", "overrides", "decision", "held_keys")
    assert [(sql, name) for sql in loaded for name in data if f'"workflows_run"."{name}"' in sql] == []


KINDS = ("incidents", "locks", "cursors", "seen", "once", "deliveries")


def fill(count: int, run: Run) -> None:
    for number in range(count):
        unattended.incident(str(run.uuid), f"incident {number}")
        unattended.item(str(run.uuid), f"item {number}")
        unattended.put(f"agent-{number}", "cursor:poll", number)
        unattended.put(f"agent-{number}", "lock:schedule", {"run": str(run.uuid), "due": ""}, 60)
        unattended.put("market", f"once:key {number}", {"run": str(run.uuid)}, 60)
        unattended.put("market", f"hook:delivery:{number}", {"run": str(run.uuid)}, 60)


# The command --------------------------------------------------------------------------------------------------

OPERATOR = ("--as", "operator")


def test_the_command_lists_and_shows_the_same(house: Run, people: People) -> None:
    head, *lines = command("triggers", "list", *OPERATOR).out.splitlines()
    assert head.split() == ["AGENT", "KIND", "NEXT", "LAST", "WHEN"]
    assert [line.split()[:2] for line in lines] == [
        ["market", "schedule"],
        ["orders", "poll"],
        ["deliveries", "webhook"],
    ]
    rows = command("triggers", "list", *OPERATOR, "--json").object()["triggers"]
    market = next(row for row in rows if row["agent"] == "market")
    assert (market["heldBy"], market["lastRun"], market["skipped"]) == (str(house.uuid), str(house.uuid), 2)
    (one,) = standings(TriggerState.objects.filter(agent_id="market"))
    assert one.next_at is not None
    assert market["nextAt"] == rfc3339(one.next_at)
    shown = command("triggers", "show", "orders", *OPERATOR).out
    assert "3 in a row: Tool list_orders failed" in shown
    assert (
        '{"after":"2026-11-27T06:00:00Z","page":4}' in shown.replace(": ", ":").replace(", ", ",") or "cursor" in shown
    )
    assert command("triggers", "show", "orders", *OPERATOR, "--json").object()["cursor"]["page"] == 4
    assert "signed (HOOK_SECRET)" in command("triggers", "show", "deliveries", *OPERATOR).out
    assert command("triggers", "show", "nobody", *OPERATOR).code == 2


def test_the_command_sets_back_with_a_reason_and_a_permission(house: Run, people: People) -> None:
    assert command("triggers", "reset-cursor", "orders", *OPERATOR).code == 64
    refused = command("triggers", "reset-cursor", "orders", "--as", "approver", "--reason", "r", "--json")
    assert (refused.code, refused.object()["code"]) == (2, "not_allowed")
    told = command("triggers", "reset-cursor", "orders", *OPERATOR, "--reason", "lost two", "--json")
    assert (told.code, told.object()) == (0, {"success": True, "agent": "orders", "reset": "cursor"})
    again = command("triggers", "reset-cursor", "orders", *OPERATOR, "--reason", "r")
    assert (again.code, "begins from the start anyway" in again.err) == (2, True)
    freed = command("triggers", "free-lock", "market", *OPERATOR, "--reason", "hangs")
    assert (freed.code, str(house.uuid) in freed.out) == (0, True)
    assert not StateRecord.objects.filter(key__in=["lock:schedule", "cursor:poll"]).exists()
