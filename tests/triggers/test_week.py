"""Two schedulers through a week in which the clock is changed: exactly the starts of the documented rule (69)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from statestore.clock import DbNow
from tests.conftest import Clock, Processes
from tests.databases import DATABASE, PROVE
from tests.served import until
from tests.triggers.scheduling import move, row, scheduled, started
from tests.triggers.timewalk import due_times, utc
from tests.workbench import work
from workflows.models import Run, TriggerState

pytestmark = pytest.mark.django_db(transaction=True)

NEW_YORK, SINGAPORE = "America/New_York", "Asia/Singapore"
FEW = [("30 1 * * *", NEW_YORK), ("*/30 1 * * 0", NEW_YORK), ("30 2 */2 * *", NEW_YORK)]
MANY = [
    *FEW,
    ("15 * * * *", NEW_YORK),
    ("*/20 */3 * * 0,6", NEW_YORK),
    ("*/15 2 * * *", NEW_YORK),
    ("0,30 0-3 * * 0", NEW_YORK),
    ("0 8 * * 1-5", SINGAPORE),
]
WEEKS = ["2026-10-29 00:00", "2026-03-05 00:00"]


@pytest.mark.parametrize("begin", WEEKS if PROVE else WEEKS[:1])
def test_exactly_the_expected_starts(
    folder: Path, clock: Clock, manage: Processes, report: Callable[[str], None], begin: str
) -> None:
    schedules = dict(enumerate(MANY if PROVE else FEW))
    first = utc(begin)
    last = first + timedelta(days=7)
    for number, (cron, zone) in schedules.items():
        scheduled(folder, cron, f"timezone: {zone}", agent_id=f"clerk-{number}")
    expected = {number: due_times(cron, zone, first, last) for number, (cron, zone) in schedules.items()}
    move(clock, first - timedelta(seconds=30))

    def scheduler() -> object:
        quick = {"KAMPONG_SCHEDULER_SECONDS": "0.1", "KAMPONG_POLLERS": "1"}
        return manage.start("scheduler", str(folder), env=quick, stdout=None, stderr=None)

    two = [scheduler(), scheduler()]
    until(lambda: TriggerState.objects.count() == len(schedules))
    moments = sorted({moment for due in expected.values() for moment in due})
    for step, moment in enumerate(moments):
        move(clock, moment + timedelta(seconds=1))
        until(lambda: not TriggerState.objects.filter(due_at__lte=DbNow()).exists())
        work()
        if PROVE and step == len(moments) // 2:
            two[0].kill()  # type: ignore[attr-defined]
            two.append(scheduler())

    assert {number: started(f"clerk-{number}") for number in schedules} == expected
    for number, due in expected.items():
        state = row(f"clerk-{number}")
        assert (state.started, state.skipped, state.failures) == (len(due), 0, 0)
    total = sum(map(len, expected.values()))
    assert Run.objects.count() == total
    report(f"two schedulers through the week of {begin[:10]} on {DATABASE}: {total} starts as expected")
