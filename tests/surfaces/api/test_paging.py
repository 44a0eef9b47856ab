"""Lists page by creation, then id: what stays is seen exactly once, whatever comes and goes (scenario 54)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import ApprovalRequest
from tests.surfaces.api.conftest import Callers
from tests.surfaces.api.test_errors import check
from tests.workbench import begin, to_pause
from workflows.models import Run, Status
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db


def test_what_waits_throughout_is_seen_exactly_once(callers: Callers, clerk: SpecFile) -> None:
    waiting = {to_pause(clerk)[1] for _ in range(95)}
    same = ApprovalRequest.objects.first()
    assert same is not None
    ApprovalRequest.objects.update(created_at=same.created_at)
    seen: list[str] = []
    decided: set[str] = set()
    after, pages = "", 0
    while True:
        page = callers.approver.get(f"/approvals?limit=20{after}").json()
        keys = [line["key"] for line in page["approvals"]]
        seen += keys
        for key in keys[1::2]:
            assert callers.approver.post(f"/approvals/{key}/approve?wait=0", {"approved": False}).status_code == 200
            decided.add(key)
        pages += 1
        if pages == 1:
            for _ in range(5):
                to_pause(clerk)
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert len(seen) == len(set(seen)) == 100
    assert waiting - decided <= set(seen)
    assert pages == 5


def ids(page: Any) -> list[str]:
    return [line["id"] for line in page["runs"]]


def test_runs_page_to_their_end(callers: Callers, clerk: SpecFile) -> None:
    expected = [str(begin(clerk).uuid) for _ in range(7)]
    first = callers.requester.get("/runs?limit=3").json()
    second = callers.requester.get(f"/runs?limit=3&after={first['next']}").json()
    last = callers.requester.get(f"/runs/?limit=3&after={second['next']}").json()
    assert ids(first) + ids(second) + ids(last) == expected
    assert last["next"] is None
    exact = callers.requester.get("/runs?limit=7").json()
    assert (len(exact["runs"]), exact["next"]) == (7, None)
    assert callers.requester.get("/runs?after=999999").json() == {"success": True, "runs": [], "next": None}


def test_the_list_has_the_newest_run_of_every_chain(callers: Callers, clerk: SpecFile) -> None:
    run, key = to_pause(clerk)
    successor = callers.approver.post(f"/approvals/{key}/approve?wait=0", {"approved": False, "reason": "no"}).json()
    (line,) = callers.requester.get("/runs").json()["runs"]
    assert (line["id"], line["resumedFrom"]) == (successor["id"], str(run.uuid))
    assert line["state"] == {"status": "rejected", "error": "no"}
    assert line["endedAt"].endswith("Z")
    assert Run.objects.filter(status=Status.RESUMED).count() == 1


def test_runs_are_found_by_agent_and_by_the_status_on_the_wire(callers: Callers, clerk: SpecFile) -> None:
    waiting, _ = to_pause(clerk)
    queued = begin(clerk)

    def found(query: str) -> list[str]:
        return ids(callers.requester.get(f"/runs?{query}").json())

    assert found("status=running") == [str(queued.uuid)]
    assert found("status=awaiting_approval") == [str(waiting.uuid)]
    assert found("status=completed") == []
    assert found("agent=clerk") == [str(waiting.uuid), str(queued.uuid)]
    assert found("agent=ghost") == []
    for query in (
        "status=queued",
        "status=resumed",
        "status=",
        "limit=0",
        "limit=1000",
        "limit=1.5",
        "after=",
        "page=2",
    ):
        check(callers.requester.get(f"/runs?{query}"), "invalid")
