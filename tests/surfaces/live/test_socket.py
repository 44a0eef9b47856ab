"""The socket of the queue over a real server: what it tells, in which order, and to whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from approvals.live.watching import tailer
from approvals.models import ApprovalRequest
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.policies import a_sign
from tests.conftest import Clock, People
from tests.surfaces.api.conftest import Callers, until
from tests.surfaces.live.conftest import cookie_of, socket
from tests.surfaces.queued import many
from tests.workbench import acting, to_pause
from workflows.registry import SpecFile
from workflows.runs import cancel_run

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_snapshot_first_and_then_numbered_changes(
    server: str, people: People, callers: Callers, clerk: SpecFile
) -> None:
    (_, first), (_, second) = to_pause(clerk), to_pause(clerk)
    with socket(server, headers=cookie_of(people.approver), origin=server) as opened:
        told = opened.next()
        listed = callers.approver.get("/approvals").json()["approvals"]
        assert told == {"type": "snapshot", "number": 0, "waiting": 2, "approvals": listed}
        assert [line["key"] for line in listed] == [first, second]
        _, third = to_pause(clerk)
        told = opened.next()
        listed = callers.approver.get("/approvals").json()["approvals"]
        assert told == {"type": "changed", "number": 1, "waiting": 3, "opened": listed[2:], "closed": []}
        decide(first, approved=False, actor=acting(people.approver))
        assert opened.next() == {"type": "changed", "number": 2, "waiting": 2, "opened": [], "closed": [first]}
        assert listed[2]["key"] == third


def test_whatever_ends_a_request_lowers_the_count_without_a_reload(
    server: str, people: People, callers: Callers, clerk: SpecFile, tmp_path: Path, clock: Clock
) -> None:
    _, expiring = to_pause(a_sign(tmp_path, "expires_in: 1h"))
    run, cancelled = to_pause(clerk)
    _, removed = to_pause(clerk)
    with socket(server, headers=cookie_of(people.approver), origin=server) as opened:
        assert opened.next()["waiting"] == 3
        cancel_run(run, actor=acting(people.operator), reason="off")
        assert opened.next()["closed"] == [cancelled]
        clock.advance(3700)  # no sweep has seen it yet
        told = opened.next()
        assert (told["closed"], told["waiting"]) == ([expiring], 1)
        StateRecord.objects.filter(key=f"approval:{removed}").delete()
        ApprovalRequest.objects.filter(key=removed).delete()
        told = opened.next()
        assert (told["closed"], told["waiting"], told["number"]) == ([removed], 0, 3)
    assert callers.approver.get("/approvals").json()["approvals"] == []
    for key in (expiring, cancelled, removed):
        assert callers.approver.post(f"/approvals/{key}/approve", {"approved": True}).status_code == 404


def test_of_more_than_a_thousand_it_says_so_and_a_page_is_told(server: str, people: People, clerk: SpecFile) -> None:
    run, _ = to_pause(clerk)
    many(run, 1000)
    with socket(server, headers=cookie_of(people.approver), origin=server) as opened:
        told = opened.next()
        assert (told["waiting"], len(told["approvals"])) == ("1000+", 50)
        gone = [line["key"] for line in told["approvals"][:2]]
        ApprovalRequest.objects.filter(key__in=gone).update(status="decided")
        told = opened.next()
        assert (told["waiting"], told["closed"], told["opened"]) == (999, gone, [])


def test_many_at_once_are_told_in_parts(server: str, people: People, clerk: SpecFile) -> None:
    run, _ = to_pause(clerk)
    with socket(server, headers=cookie_of(people.approver), origin=server) as opened:
        opened.next()
        many(run, 120)
        parts = [opened.next() for _ in range(3)]
    assert [(len(part["opened"]), part["number"], part["waiting"]) for part in parts] == [
        (50, 1, 121),
        (50, 2, 121),
        (20, 3, 121),
    ]


def test_one_thread_reads_for_all_and_ends_with_the_last(server: str, people: People, clerk: SpecFile) -> None:
    headers = cookie_of(people.approver)
    with socket(server, headers=headers, origin=server) as one, socket(server, headers=headers, origin=server) as two:
        assert one.next() == two.next()
        assert tailer.watchers == 2
        to_pause(clerk)
        assert one.next() == two.next()
    until(lambda: tailer.watchers == 0)
    until(lambda: not tailer.running)
