"""The support desk: each ticket is asked about once and answered once, whatever is delivered twice and killed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.counts import count
from tests.unattended.house import AT_WORK, House
from tests.unattended.outside import Outside
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "support-desk"
TICKETS = count(3, 8)
SENDERS = count(2, 4)
#: When the server is killed: everyday among the deliveries, when proving at each moment and at all of them.
MOMENTS = [("burst",)] + count(0, 1) * [("working",), ("waiting",), ("deciding",), ("burst", "waiting", "deciding")]


CHANGED = "A new cup is on its way."


def message(ticket: int, number: int) -> dict[str, str]:
    return {
        "event": f"evt-{ticket}-{number}",
        "ticket": f"K-{ticket}",
        "from": f"customer-{ticket}@example.org",
        "text": f"The cup came broken ({number})",
    }


def counts(messages: int, replies: int) -> dict[str, int]:
    return {"messages": messages, "replies": replies}


def decide_all(house: House) -> None:
    """One reply is changed, one is not sent, and the others go out as they are."""
    changed, refused, *plain = house.waiting()
    decisions: list[tuple[str, dict[str, Any]]] = [
        (changed, {"approved": True, "edits": {"triage.reply": CHANGED}}),
        (refused, {"approved": False, "reason": "call her"}),
        *((key, {"approved": True}) for key in plain),
    ]
    for key, said in decisions:
        assert house.decide(key, **said).status_code == 200
        if key == refused:
            house.working("deciding")
    house.settle()


@pytest.mark.parametrize("moments", MOMENTS)
def test_no_ticket_is_lost_and_none_is_answered_twice(
    moments: tuple[str, ...], house: Callable[..., House], outside: Outside, report: Callable[[str], None]
) -> None:
    desk = house("support.yaml", *moments)
    desk.start(*["--web-only"] * ("burst" in moments))
    events = [message(ticket, number) for number in (1, 2) for ticket in range(TICKETS)]
    told = desk.deliver(AGENT, events, SENDERS)
    assert {len(ids) for ids in told} == {1}, "every delivery of an event is told the same run"
    assert Run.objects.filter(resumed_from=None).count() == len(events)
    desk.settle()

    assert len(desk.waiting()) == TICKETS, "each ticket is asked about once"
    tickets = {f"K-{number}": counts(2, 0) for number in range(TICKETS)}
    assert outside.told()["tickets"] == tickets
    desk.moment("waiting")
    desk.deliver(AGENT, [message(0, 3), message(0, 1)])
    desk.settle()
    assert len(desk.waiting()) == TICKETS, "what is written meanwhile is noted, and an old event is known"
    decide_all(desk)

    told_outside = outside.told()
    written = [told_outside["tickets"][f"K-{number}"] for number in range(TICKETS)]
    assert [one["messages"] for one in written] == [3] + [2] * (TICKETS - 1)
    assert sorted(one["replies"] for one in written) == [0] + [1] * (TICKETS - 1)
    assert told_outside["made"]["cases"] == 1, "the one that was not answered is handed over"
    texts = [reply["text"] for number in range(TICKETS) for reply in outside.ticket(f"K-{number}")["replies"]]
    assert texts.count(CHANGED) == 1
    calls, repeats = outside.calls(), told_outside["repeats"]
    made = (
        calls["POST /service/tickets/messages"] + calls["POST /service/tickets/replies"] + calls["POST /service/cases"]
    )
    assert made == 2 * TICKETS + 1 + TICKETS + repeats
    assert (repeats > 0) == bool(AT_WORK & set(moments)), "what was out when the server was killed was sent again"
    assert desk.waiting() == []

    desk.deliver(AGENT, [message(1, 9)])
    desk.settle()
    assert len(desk.waiting()) == 1, "a ticket that was closed becomes pending anew"
    report(f"{len(events)} events of {TICKETS} tickets, {SENDERS} senders, {desk.kills} kills: none lost, none doubled")
