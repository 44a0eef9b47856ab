"""Who may do what, and that a refusal tells nothing about what exists (scenarios 35, 40, 41, 50)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import ApprovalRequest, AuditEntry
from tests.conftest import Clock
from tests.surfaces.api.conftest import Callers
from tests.surfaces.api.test_errors import UNKNOWN, check
from tests.workbench import to_pause
from workflows.models import Run
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db

START = {"agent": "clerk", "input": ""}
#: What each person gets. 409 and 404 are answers to those who may ask.
MATRIX: dict[tuple[str, str], dict[str, int]] = {
    ("POST", "/runs"): {"approver": 403, "requester": 201, "stranger": 403, "operator": 201},
    ("POST", "/webhook/clerk"): {"approver": 403, "requester": 201, "stranger": 403, "operator": 201},
    ("POST", "/webhook"): {"approver": 403, "requester": 201, "stranger": 403, "operator": 201},
    ("GET", "/runs"): {"approver": 200, "requester": 200, "stranger": 403, "operator": 200},
    ("GET", "/runs/{run}"): {"approver": 200, "requester": 200, "stranger": 403, "operator": 200},
    ("POST", "/runs/{run}/retry"): {"approver": 403, "requester": 403, "stranger": 403, "operator": 409},
    ("POST", "/runs/{run}/give-up"): {"approver": 403, "requester": 403, "stranger": 403, "operator": 409},
    ("GET", "/approvals"): {"approver": 200, "requester": 403, "stranger": 403, "operator": 200},
    ("GET", "/approvals/{key}"): {"approver": 200, "requester": 403, "stranger": 403, "operator": 200},
    ("POST", "/approvals/{key}/approve?wait=0"): {
        "requester": 403,
        "stranger": 403,
        "operator": 403,
        "approver": 200,
    },
    ("POST", "/runs/{run}/approve?wait=0"): {"requester": 403, "stranger": 403, "operator": 403, "approver": 200},
    ("POST", "/runs/{run}/cancel"): {"approver": 403, "requester": 403, "stranger": 403, "operator": 200},
}


def body_for(path: str) -> Any:
    if "approve" in path:
        return {"approved": True}
    return {"reason": "so"} if path.startswith("/runs/") else START


@pytest.mark.parametrize(("method", "route"), MATRIX)
def test_the_matrix_holds(method: str, route: str, callers: Callers, clerk: SpecFile) -> None:
    run, key = to_pause(clerk)
    path = route.format(run=run.uuid, key=key)
    for who, status in MATRIX[method, route].items():
        caller = getattr(callers, who)
        response = caller.get(path) if method == "GET" else caller.post(path, body_for(route))
        assert response.status_code == status, (who, response.content)
        if status == 403:
            assert "permission" in check(response, "not_allowed")["rule"]


def test_without_the_permission_every_key_and_run_gets_the_same_answer(
    callers: Callers, clerk: SpecFile, clock: Clock
) -> None:
    _, used = to_pause(clerk)
    callers.approver.post(f"/approvals/{used}/approve?wait=0", {"approved": True})
    run, cancelled = to_pause(clerk)
    callers.operator.post(f"/runs/{run.uuid}/cancel", {"reason": "so"})
    run, expired = to_pause(clerk)
    clock.advance(8 * 24 * 3600)
    present, pending = to_pause(clerk)
    keys = (used, cancelled, expired, pending, UNKNOWN, "17")
    bodies = {callers.stranger.post(f"/approvals/{key}/approve", {"approved": True}).content for key in keys}
    bodies |= {callers.operator.post(f"/approvals/{key}/approve", {"approved": False}).content for key in keys}
    bodies |= {
        callers.operator.post(f"/runs/{name}/approve", {"approved": True}).content
        for name in (run.uuid, present.uuid, pending, UNKNOWN, "17")
    }
    assert len(bodies) == 1
    assert len({callers.stranger.get(f"/approvals/{key}").content for key in keys}) == 1
    assert len({callers.stranger.get(f"/runs/{name}").content for name in (run.uuid, UNKNOWN, "17")}) == 1
    acts = {callers.stranger.post(f"/runs/{name}/cancel", {}).content for name in (present.uuid, UNKNOWN, "17")}
    assert len(acts) == 1


def test_four_endings_are_told_apart_to_those_who_may_see_them(callers: Callers, clerk: SpecFile, clock: Clock) -> None:
    _, used = to_pause(clerk)
    callers.approver.post(f"/approvals/{used}/approve?wait=0", {"approved": False, "reason": "no"})
    run, cancelled = to_pause(clerk)
    callers.operator.post(f"/runs/{run.uuid}/cancel", {"reason": "so"})
    _, expired = to_pause(clerk)
    clock.advance(8 * 24 * 3600)
    told: dict[str, Any] = {}
    for name, key in (("used", used), ("cancelled", cancelled), ("expired", expired), ("never", UNKNOWN)):
        by_key = callers.approver.post(f"/approvals/{key}/approve", {"approved": True})
        body = check(by_key, "approval_not_found")
        assert check(callers.approver.get(f"/approvals/{key}"), "approval_not_found").get("decision") == body.get(
            "decision"
        )
        by_run = callers.approver.post(f"/runs/{key}/approve", {"approved": True})
        check(by_run, "run_not_found" if name == "never" else "approval_not_found")
        told[name] = body.get("decision")
    assert (told["used"]["outcome"], told["used"]["by"], told["used"]["surface"]) == ("rejected", "approver", "api")
    assert (told["cancelled"]["outcome"], told["cancelled"]["by"]) == ("cancelled", "operator")
    assert told["expired"]["outcome"] == "expired"
    assert told["never"] is None


def test_a_superuser_may_do_everything(callers: Callers, people: Any, clerk: SpecFile) -> None:
    people.stranger.is_superuser = True
    people.stranger.save(update_fields=["is_superuser"])
    _, key = to_pause(clerk)
    assert callers.stranger.post(f"/approvals/{key}/approve?wait=0", {"approved": True}).status_code == 200
    entry = AuditEntry.objects.get(act="decide")
    assert (entry.actor, entry.surface, entry.actor_user_id) == ("stranger", "api", people.stranger.pk)
    assert ApprovalRequest.objects.get().status == "decided"
    assert Run.objects.count() == 2
