"""The market sheet: each due time that is not skipped is one line, written once, whoever was killed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from statestore.clock import now
from tests.conftest import Clock
from tests.counts import count
from tests.served import until
from tests.unattended.house import House
from tests.unattended.outside import Outside
from workflows.models import Run, TriggerState

pytestmark = pytest.mark.django_db(transaction=True)

FIVE = timedelta(minutes=5)
#: When the server is killed: everyday while a scheduled run waits, when proving at each moment and at all of them.
MOMENTS = [("waiting",)] + count(0, 1) * [("working",), ("idle",), ("deciding",), ("working", "waiting", "idle")]


def name_of(mark: datetime) -> str:
    """As the sheet has it."""
    return mark.strftime("%Y-%m-%dT%H:%M:00Z")


def next_mark() -> datetime:
    """The next time at which a run is due."""
    present = now()
    return present.replace(minute=present.minute // 5 * 5, second=0, microsecond=0) + FIVE


def go_to(mark: datetime, clock: Clock) -> str:
    """Just after that time; its name."""
    clock.advance((mark - now()).total_seconds() + 1)
    return name_of(mark)


@pytest.mark.parametrize("moments", MOMENTS)
def test_every_due_time_has_its_line_once(
    moments: tuple[str, ...],
    house: Callable[..., House],
    outside: Outside,
    clock: Clock,
    report: Callable[[str], None],
) -> None:
    def lines() -> dict[str, int]:
        written: dict[str, int] = outside.told()["sheet"]["lines"]
        return written

    go_to(next_mark(), clock)  # so that no due time comes by itself while this is on
    clerk = house("market.yaml", *moments)
    clerk.start()
    until(lambda: TriggerState.objects.exists())
    wanted = [go_to(next_mark(), clock)]
    clerk.working("working")
    until(lambda: set(wanted) <= set(lines()))
    clerk.settle()

    third = next_mark()
    outside.tell("market", {"symbol": "TIN", "percent": 9, "at": name_of(third)})
    waits = go_to(third, clock)
    until(clerk.waiting)
    assert len(clerk.waiting()) == 1, "a price that moved far is looked at"
    clerk.moment("waiting", away=3 * FIVE.total_seconds())
    until(lambda: TriggerState.objects.get().skipped == 1)
    go_to(next_mark(), clock)
    until(lambda: TriggerState.objects.get().skipped == 2)
    assert sorted(lines()) == wanted, "while a run waits no other one is started"
    (key,) = clerk.waiting()
    assert clerk.decide(key, approved=True).status_code == 200
    clerk.working("deciding")
    clerk.settle()
    wanted.append(waits)
    assert sorted(lines()) == wanted

    clerk.moment("idle", away=3 * FIVE.total_seconds())
    wanted.append(name_of(next_mark() - FIVE))  # of those that were missed, the last
    until(lambda: set(wanted) <= set(lines()))
    wanted.append(go_to(next_mark(), clock))
    until(lambda: set(wanted) <= set(lines()))
    clerk.settle()

    told, calls = outside.told(), outside.calls()
    assert sorted(told["sheet"]["lines"]) == wanted
    assert set(told["sheet"]["lines"].values()) == {1}
    assert told["sheet"]["rows"] == 3 * len(wanted)
    assert calls["PUT /service/sheet"] == len(wanted) + told["repeats"]
    assert told["repeats"] == 0 or {"working", "deciding"} & set(moments)
    assert Run.objects.filter(resumed_from=None).count() == TriggerState.objects.get().started == len(wanted)
    report(f"{len(wanted)} due times, 2 skipped, {clerk.kills} kills: each line written once")
