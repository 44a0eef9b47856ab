"""A million expired entries go in short parts while people decide (scenario 71)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections

from approvals.models import AuditEntry
from approvals.services import decide
from statestore import upkeep
from statestore.clock import now_sql
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.conftest import People
from tests.counts import count
from tests.databases import PROVE
from tests.workbench import ASKING, acting, to_pause, write_spec
from workflows.housekeeping import Chore
from workflows.registry import SpecFile
from workflows.rota import Rota

pytestmark = pytest.mark.django_db(transaction=True)

EXPIRED = count(10_000, 1_000_000)
LIVE = 1_000
#: Decisions that are timed before, and at least so many while the purge goes on.
DECISIONS = count(8, 100)
RENEWED = 20
#: Times one purge of a hundred.
LONGEST = 20
#: Times a decision when nothing else is going on, in the middle.
SLOWDOWN = 5


def filled(workflow: str, many: int, seconds: float) -> None:
    """So many entries whose lifetime ends in so many seconds, or ended so long ago, each at its own moment."""
    until, at = now_sql(connection, seconds)
    created, created_at = now_sql(connection)
    if connection.vendor == "postgresql":
        numbers, moment = "generate_series(1, %s) AS n(i)", f"{until} + make_interval(secs => i * 0.0005)"
    else:
        numbers = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) SELECT i FROM n) AS n"
        moment = f"strftime('%%Y-%%m-%%d %%H:%%M:%%f', {until}, '+' || (i * 0.0005) || ' seconds')"
    with connection.cursor() as cursor:
        cursor.execute(
            'INSERT INTO statestore_staterecord (workspace, workflow, "key", value, version, expires_at, created_at, '
            f"updated_at) SELECT 'default', %s, 'k' || i, '1', 1, {moment}, {created}, {created} FROM {numbers}",
            [workflow, *at, *created_at, *created_at, many],
        )
        if connection.vendor == "postgresql":
            cursor.execute("ANALYZE statestore_staterecord")


class Deciding:
    """Somebody who starts, pauses and decides; only the decisions are timed."""

    def __init__(self, spec: SpecFile, user: User) -> None:
        self._spec, self._actor = spec, acting(user)
        self.took: list[float] = []

    def once(self) -> None:
        key = to_pause(self._spec)[1]
        begun = time.perf_counter()
        decide(key, approved=False, reason="no", actor=self._actor)
        self.took.append(time.perf_counter() - begun)


class Purging(threading.Thread):
    """A process that keeps house, as far as it purges: parts with rests between, by the rota of the workers.

    In between it purges one hundred, as a measure under the same conditions.
    """

    def __init__(self) -> None:
        super().__init__()
        self.took: list[float] = []
        self.hundreds: list[float] = []
        self.error: Exception | None = None
        self._chore = Chore(name="purge", every_seconds=60, run=self._pass, batch=upkeep.BATCH + 100)

    def _pass(self) -> int:
        done = 0
        # In turns, since the first of the two comes after a rest.
        for limit in (100, upkeep.BATCH) if len(self.took) % 2 else (upkeep.BATCH, 100):
            begun = time.perf_counter()
            done += upkeep.purge_expired(limit)
            (self.hundreds if limit == 100 else self.took).append(time.perf_counter() - begun)
        return done

    def run(self) -> None:
        rota = Rota(lambda: (self._chore,))
        try:
            while rota.due() and rota.do(self._chore):
                time.sleep(rota.seconds_to_next(most=5))
        except Exception as error:  # noqa: BLE001  (told by the test)
            self.error = error
        finally:
            connections.close_all()


@pytest.mark.timeout(count(120, 3600))
def test_decisions_keep_their_pace_while_a_million_expired_entries_go(
    tmp_path: Path, people: People, report: Callable[[str], None]
) -> None:
    deciding = Deciding(write_spec(tmp_path, ASKING), people.approver)
    filled("clerk", EXPIRED, -3600)
    filled("other", LIVE, 3600)
    for _ in range(DECISIONS + 2):
        deciding.once()
    alone = median(deciding.took[2:])
    deciding.took.clear()

    purging, store = Purging(), StateStore("default", "clerk")
    purging.start()
    renewed = [f"k{EXPIRED - number * 50}" for number in range(RENEWED)]
    while purging.is_alive() or len(deciding.took) < DECISIONS:
        if renewed and len(deciding.took) % 2 and purging.is_alive():
            store.put(renewed.pop(), "renewed", ttl=3600)
        deciding.once()
    purging.join()
    beside = median(deciding.took)

    assert purging.error is None
    kept = RENEWED - len(renewed)
    assert StateRecord.objects.filter(workflow="other").count() == LIVE
    assert StateRecord.objects.filter(workflow="clerk", value='"renewed"').count() == kept
    assert StateRecord.objects.count() == LIVE + kept
    assert AuditEntry.objects.count() == DECISIONS + 2 + len(deciding.took)
    parts, hundreds = sorted(purging.took), sorted(purging.hundreds)
    report(
        f"{EXPIRED:,} expired entries in {len(parts)} parts of {upkeep.BATCH}, and as many of 100: the middle one "
        f"{median(parts) * 1000:.1f} and {median(hundreds) * 1000:.1f} ms, 99 of 100 within {most(parts) * 1000:.1f} "
        f"and {most(hundreds) * 1000:.1f} ms, the longest {parts[-1] * 1000:.0f} and {hundreds[-1] * 1000:.0f} ms; of "
        f"{len(deciding.took)} decisions meanwhile the middle one took {beside / alone:.2f} times as long as alone, "
        f"the slowest {max(deciding.took) * 1000:.0f} ms"
    )
    assert len(parts) >= (EXPIRED - RENEWED) / (upkeep.BATCH + 100)
    if not PROVE:
        return  # So few parts, of half a millisecond, beside the other suites: what one takes says nothing.
    # A machine that does much else makes single ones long, of either kind.
    assert most(parts) <= LONGEST * median(hundreds)
    assert parts[-1] <= LONGEST * hundreds[-1]
    assert beside <= SLOWDOWN * alone


def most(took: list[float]) -> float:
    """What 99 of 100 stay within."""
    return took[len(took) * 99 // 100]
