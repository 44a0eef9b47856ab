"""`sweep` goes on to the end, says what it did, and gives the space back where it is asked to."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management.base import OutputWrapper
from django.db import connection
from pytest_django.fixtures import Settings

from approvals.services import decide
from statestore.errors import NotCompacted
from statestore.sqlite import vacuum
from statestore.store import StateStore
from tests.conftest import Clock, People
from tests.surfaces.cli.running import command
from tests.surfaces.cli.test_upkeep_commands import numbers
from tests.workbench import ASKING, acting, to_pause, work, write_spec
from workflows import housekeeping
from workflows.management.progress import Tally
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 24 * 3600


def test_it_ends_what_is_kept_no_longer_and_counts_chains(
    tmp_path: Path, people: People, clock: Clock, settings: Settings
) -> None:
    spec = write_spec(tmp_path, ASKING)
    for _ in range(3):
        decide(to_pause(spec)[1], approved=False, reason="no", actor=acting(people.approver))
    work()
    command("sweep")
    settings.KAMPONG_KEEP_REJECTED = "90d"
    clock.advance(91 * DAY)
    told = command("sweep")
    done = numbers(told.out)
    assert (told.code, done["finished runs"], done["old decisions"]) == (0, 3, 0)
    shown = command("runs", "show", str(Run.objects.earliest("pk").uuid), "--as", "approver")
    assert "rejected" in shown.out
    assert "what it read and made was removed then" in shown.out
    settings.KAMPONG_KEEP_DECISIONS = "1d"
    done = numbers(command("sweep").out)
    assert (done["finished runs"], done["old decisions"], Run.objects.count()) == (0, 3, 0)


def test_what_takes_many_passes_is_done_to_the_end_with_rests_between(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [5000]
    rests: list[float] = []

    def purge() -> int:
        part = min(1000, left[0])
        left[0] -= part
        return part

    monkeypatch.setattr(housekeeping, "_chores", {})
    monkeypatch.setattr("workflows.management.commands.sweep.time.sleep", rests.append)
    housekeeping.register("purge", 60, purge, batch=1000)
    housekeeping.register("tells the log", 60, lambda: 0, only_tells=True)
    told = command("sweep")
    assert (told.code, told.out) == (0, "purge: 5000\n")
    assert rests == [housekeeping.SHORTEST_REST] * 5


@pytest.mark.parametrize("live", [True, False])
def test_long_work_says_how_far_it_is(live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [100.0]
    monkeypatch.setattr("workflows.management.progress.time.monotonic", lambda: moment[0])
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: live)
    with Tally("purge", OutputWrapper(out)) as tally:
        for _ in range(62):
            tally.add(1000)
            moment[0] += 1
    said = out.getvalue()
    assert tally.done == 62_000
    if live:
        assert said.startswith("\rpurge: 3,000 so far\rpurge: 4,000 so far")
        assert said.endswith("\rpurge: 62,000 so far\r                    \r")
    else:
        assert said == "purge: 31,000 so far\npurge: 61,000 so far\n"


def test_the_space_is_given_back(clock: Clock) -> None:
    store = StateStore("default", "clerk")
    for number in range(150):
        store.put(f"old-{number}", "x" * 20_000, ttl=5)
    clock.advance(6)
    told = command("sweep", "--vacuum")
    last = told.out.splitlines()[-1]
    assert told.code == 0
    if connection.vendor == "sqlite":
        before, after = (float(part.split()[0]) for part in last.removeprefix("vacuum: ").split(", "))
        assert before > 3 > after
    else:
        assert last == "vacuum: nothing to do, PostgreSQL uses the space again by itself (autovacuum)"


def test_a_busy_database_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def refuse(seconds: float) -> None:
        asked.append(seconds)
        raise NotCompacted("The file was not made smaller: the database is busy. Run it again.")

    monkeypatch.setattr(vacuum, "compact", refuse)
    told = command("sweep", "--vacuum", "--vacuum-seconds", "0.5")
    assert (told.code, asked) == (2, [0.5])
    assert told.err == "The file was not made smaller: the database is busy. Run it again.\n"
    assert "sealing: 0" in told.out, "the chores are done before it"


@pytest.mark.parametrize("words", [("--vacuum-seconds", "5"), ("--vacuum", "--vacuum-seconds", "0")])
def test_wrong_use_is_refused(words: tuple[str, ...]) -> None:
    assert command("sweep", *words).code == 64
