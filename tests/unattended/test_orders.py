"""The order desk: each order that is placed is one run and one parcel, whoever was killed between two polls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from statestore.clock import now
from tests.conftest import Clock
from tests.counts import count
from tests.served import until
from tests.unattended.house import AT_WORK, House
from tests.unattended.outside import Outside
from workflows.models import Run, TriggerState

pytestmark = pytest.mark.django_db(transaction=True)

#: How long to the next poll, and a little more.
HALF_A_MINUTE = 31
#: A poll hands over twenty; two are there from the start.
SMALL, BIG = count(18, 60), count(2, 5)
#: When the server is killed: everyday between two polls, when proving at each moment and at all of them.
MOMENTS = [("between",)] + count(0, 1) * [("polling",), ("waiting",), ("deciding",), ("polling", "between", "waiting")]


@pytest.mark.parametrize("moments", MOMENTS)
def test_every_order_is_shipped_once(
    moments: tuple[str, ...],
    house: Callable[..., House],
    outside: Outside,
    clock: Clock,
    report: Callable[[str], None],
) -> None:
    def place(number: int, total: int) -> None:
        for _ in range(number):
            outside.tell("orders", {"item": "cup", "total": total, "customer": "mei@example.org"})

    def polled(wanted: int) -> None:
        """Poll until so many runs were started."""

        while TriggerState.objects.get().started < wanted:
            clock.advance(HALF_A_MINUTE)
            until(lambda: TriggerState.objects.get().due_at > now())
            desk.settle()

    place(BIG, 640)
    place(SMALL, 20)
    desk = house("orders.yaml", *moments)
    desk.start()
    desk.working("polling")
    until(lambda: TriggerState.objects.exists())
    polled(20)
    desk.moment("between")
    polled(2 + BIG + SMALL)

    assert len(desk.waiting()) == BIG
    assert sorted(outside.told()["orders"].values()) == [0] * BIG + [1] * (SMALL + 2)
    desk.moment("waiting")
    place(1, 20)
    polled(3 + BIG + SMALL)
    for key in desk.waiting():
        assert desk.decide(key, approved=True).status_code == 200
        desk.working("deciding")
    desk.settle()

    told, calls = outside.told(), outside.calls()
    orders = 3 + BIG + SMALL
    assert list(told["orders"].values()) == [1] * orders
    assert calls["POST /service/shipments"] == orders + told["repeats"]
    assert (told["repeats"] > 0) == bool(AT_WORK & set(moments)), "what was out at the kill was sent again"
    assert Run.objects.filter(resumed_from=None).count() == TriggerState.objects.get().started == orders
    report(f"{orders} orders, {calls['GET /service/orders?since']} polls, {desk.kills} kills: each shipped once")
