"""The incident desk: one page and one question for an incident, however often its alert comes and who is killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Clock
from tests.counts import count
from tests.surfaces.cli.running import command
from tests.unattended.house import LEASE, House
from tests.unattended.outside import Outside
from tests.workflows.storing import keys

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "incident-desk"
DISKS = count(3, 8)
SENDERS = count(2, 4)
#: How long an alert that comes again is the same one, and a little more.
QUARTER = 901
#: When the server is killed: everyday among the alerts, when proving at each moment and at all of them.
MOMENTS = [("burst",)] + count(0, 1) * [("working",), ("waiting",), ("deciding",), ("burst", "waiting", "deciding")]


def alert(disk: int, text: str = "The disk is full") -> dict[str, str]:
    return {"fingerprint": f"disk-{disk}", "service": "billing", "summary": text}


def seen(disks: int, pages: int, alerts: int) -> dict[str, dict[str, int]]:
    """What the pager counts when each incident was told of so often."""
    return {f"disk-{disk}": {"pages": pages, "alerts": alerts} for disk in range(disks)}


@pytest.mark.parametrize("moments", MOMENTS)
def test_one_page_for_each_incident_and_no_alert_is_lost(
    moments: tuple[str, ...], house: Callable[..., House], outside: Outside, report: Callable[[str], None]
) -> None:
    desk = house("incident.yaml", *moments)
    desk.start(*["--web-only"] * ("burst" in moments))
    alerts = [alert(disk) for disk in range(DISKS)]
    desk.deliver(AGENT, alerts, SENDERS)
    desk.settle()

    assert outside.told()["incidents"] == seen(DISKS, pages=1, alerts=0)
    assert len(desk.waiting()) == DISKS
    desk.moment("waiting", away=QUARTER)
    desk.deliver(AGENT, [alert(disk, "Still full") for disk in range(DISKS)])
    desk.settle()
    assert outside.told()["incidents"] == seen(DISKS, pages=1, alerts=1)
    first, *others = desk.waiting()
    assert len(others) == DISKS - 1, "a later alert asks nobody"

    for key in (first, *others):
        assert desk.decide(key, approved=True).status_code == 200
        desk.moment("deciding", away=LEASE)
    desk.settle()
    assert desk.waiting() == []
    assert [key for key in keys(AGENT) if key.startswith("incident:")] == []
    desk.clock.advance(QUARTER)
    desk.deliver(AGENT, [alert(0)])
    desk.settle()
    once_more = seen(DISKS, pages=1, alerts=1) | {"disk-0": {"pages": 2, "alerts": 1}}
    told, calls = outside.told(), outside.calls()
    assert told["incidents"] == once_more, "what was closed is a new incident"
    assert calls["POST /service/pages"] + calls["POST /service/alerts"] == 2 * DISKS + 1 + told["repeats"]
    assert (told["repeats"] > 0) == ("working" in moments)
    report(f"{DISKS} incidents, {SENDERS} senders, {desk.kills} kills: each paged once, each alert noted once")


def test_what_its_introduction_says_at_the_terminal(outside: Outside, clock: Clock) -> None:
    path = str(outside.example("incident.yaml") / "incident.yaml")

    def run(text: str) -> Any:
        told = command("run_spec", path, "--input", json.dumps(alert(0)), "--json", text=text)
        assert told.code in (0, 2), told.err
        return told.object()

    first = run("n: not yet\n")
    assert (first["status"], outside.told()["incidents"]) == ("rejected", seen(1, pages=1, alerts=0))
    assert list(run("")["output"]) == ["seen"]
    clock.advance(QUARTER)
    later = run("")["output"]
    assert (later["open"]["opened"], later["ours"]["first"]) == (False, False)
    assert outside.told()["incidents"] == seen(1, pages=1, alerts=1)
    assert "incident:disk-0" in keys(AGENT)
