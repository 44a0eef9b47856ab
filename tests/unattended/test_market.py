"""The market sheet: each due time that is not skipped is one line, written once, whoever was killed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from statestore.clock import now
from tests.conftest import Clock
from tests.counts import count
from tests.served import until
from tests.unattended.house import AT_WORK, House
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


class Clerk:
    """The server with the sheet, and the lines that it should have written so far."""

    def __init__(self, house: House, outside: Outside) -> None:
        self.house, self.outside, self.clock = house, outside, house.clock
        self.wanted: list[str] = []

    def lines(self) -> list[str]:
        return sorted(self.outside.told()["sheet"]["lines"])

    def written(self, mark: str) -> None:
        """Until this line is there as well, and no run is at work."""
        self.wanted.append(mark)
        until(lambda: mark in self.lines())
        self.house.settle()
        assert self.lines() == self.wanted

    def asked_and_skipping(self) -> str:
        """A price moves far at the next due time: its run waits, and those after it are skipped. Which."""
        mark = next_mark()
        self.outside.tell("market", {"symbol": "TIN", "percent": 9, "at": name_of(mark)})
        go_to(mark, self.clock)
        until(self.house.waiting)
        self.house.moment("waiting", away=3 * FIVE.total_seconds())
        until(lambda: TriggerState.objects.get().skipped == 1)
        go_to(next_mark(), self.clock)
        until(lambda: TriggerState.objects.get().skipped == 2)
        assert self.lines() == self.wanted, "while a run waits no other one is started"
        return name_of(mark)


@pytest.mark.parametrize("moments", MOMENTS)
def test_every_due_time_has_its_line_once(
    moments: tuple[str, ...],
    house: Callable[..., House],
    outside: Outside,
    clock: Clock,
    report: Callable[[str], None],
) -> None:
    go_to(next_mark(), clock)  # so that no due time comes by itself while this is on
    server = house("market.yaml", *moments)
    server.start()
    clerk = Clerk(server, outside)
    until(lambda: TriggerState.objects.exists())
    first = go_to(next_mark(), clock)
    server.working("working")
    clerk.written(first)
    waits = clerk.asked_and_skipping()
    (key,) = server.waiting()
    assert server.decide(key, approved=True).status_code == 200
    server.working("deciding")
    clerk.written(waits)
    server.moment("idle", away=3 * FIVE.total_seconds())
    clerk.written(name_of(next_mark() - FIVE))  # of those that were missed, the last
    clerk.written(go_to(next_mark(), clock))

    told, calls = outside.told(), outside.calls()
    assert told["sheet"] == {"lines": dict.fromkeys(clerk.wanted, 1), "rows": 3 * len(clerk.wanted)}
    assert calls["PUT /service/sheet"] == len(clerk.wanted) + told["repeats"]
    assert (told["repeats"] > 0) == bool(AT_WORK & set(moments)), "what was out at the kill was sent again"
    started = TriggerState.objects.get().started
    assert Run.objects.filter(resumed_from=None).count() == started == len(clerk.wanted)
    report(f"{started} due times, 2 skipped, {server.kills} kills: each line written once")
