"""Runs over HTTP: start, read, act, and the chain that reads as its newest run."""

from __future__ import annotations

import pytest

from approvals.models import AuditEntry
from tests.conftest import Clock
from tests.surfaces.api.conftest import Callers
from tests.surfaces.api.test_errors import check
from tests.workbench import begin, key_of, to_pause, work
from workflows.endings import end_from_outside
from workflows.engine.events import Interrupted
from workflows.models import Run, Status
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db

START = {"agent": "clerk", "input": "lunch"}


def interrupt(run: Run) -> None:
    """As recovery does with a lost worker."""
    from django.db.models import Q

    assert end_from_outside(run, where=Q(status=run.status), event=Interrupted(error="lost its worker", step="first"))


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_start_is_answered_before_any_work(slash: str, callers: Callers, clerk: SpecFile) -> None:
    response = callers.requester.post(f"/runs{slash}", START)
    assert response.status_code == 201
    run = Run.objects.get()
    assert response.json() == {
        "success": True,
        "id": str(run.uuid),
        "agent": "clerk",
        "state": {"status": "running", "trace": []},
    }
    assert (run.status, run.input) == (Status.QUEUED, "lunch")
    assert callers.requester.get(f"/runs/{run.uuid}{slash}").json()["state"] == {"status": "running", "trace": []}


def test_a_waiting_run_names_its_key(callers: Callers, clerk: SpecFile) -> None:
    run, key = to_pause(clerk, input="lunch")
    state = callers.requester.get(f"/runs/{run.uuid}").json()["state"]
    assert state["status"] == "awaiting_approval"
    assert state["pendingApproval"] == {
        "step": "first",
        "kind": "approval",
        "reason": "Go on with lunch?",
        "key": key,
    }


def test_an_old_id_reads_as_the_newest_run_of_its_chain(callers: Callers, clerk: SpecFile) -> None:
    run, key = to_pause(clerk)
    second = callers.approver.post(f"/approvals/{key}/approve?wait=0", {"approved": True, "reason": "ok"}).json()["id"]
    work()
    old = callers.requester.get(f"/runs/{run.uuid}").json()
    new = callers.requester.get(f"/runs/{second}").json()
    assert old["id"] == str(run.uuid)
    assert old["resumedAs"] == second
    assert old["state"] == new["state"]
    assert new["state"]["status"] == "awaiting_approval"
    assert new["resumedFrom"] == str(run.uuid)
    assert "resumedAs" not in new
    # Deciding the old id decides what its chain waits for now.
    third = callers.approver.post(f"/runs/{run.uuid}/approve?wait=0", {"approved": False, "reason": "enough"}).json()
    assert third["state"]["status"] == "rejected"
    assert third["state"]["error"] == "enough"
    assert third["resumedFrom"] == second
    assert callers.requester.get(f"/runs/{run.uuid}").json()["resumedAs"] == third["id"]


def test_its_own_record_never_says_resumed_to_a_status(callers: Callers, clerk: SpecFile) -> None:
    run, key = to_pause(clerk)
    second = callers.approver.post(f"/approvals/{key}/approve?wait=0", {"approved": True}).json()["id"]
    work()
    own = callers.requester.get(f"/runs/{run.uuid}?own=1").json()
    assert own["resumedAs"] == second
    assert own["state"]["status"] != "resumed"
    assert own["state"]["trace"] == []
    check(callers.requester.get(f"/runs/{run.uuid}?own=maybe"), "invalid")
    check(callers.requester.get(f"/runs/{run.uuid}?owm=1"), "invalid")


def test_a_second_start_with_the_same_key_is_the_first_run(callers: Callers, clerk: SpecFile, clock: Clock) -> None:
    once = {"Idempotency-Key": "order-17"}
    first = callers.requester.post("/runs", START, headers=once)
    work()
    again = callers.requester.post("/runs", START, headers=once)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["state"]["status"] == "awaiting_approval"
    hook = callers.requester.send("/webhook/clerk", b'"lunch"', headers=once)
    assert (hook.status_code, hook.json()["id"]) == (200, first.json()["id"])
    check(callers.requester.send("/webhook/clerk", b"{}", headers=once), "invalid")
    assert Run.objects.count() == 1
    assert callers.operator.post("/runs", START, headers=once).status_code == 201, "keys of two users are two"
    clock.advance(24 * 3600 + 1)
    assert callers.requester.post("/runs", START, headers=once).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_an_idempotency_key_that_is_none_is_refused(key: str, callers: Callers, clerk: SpecFile) -> None:
    check(callers.requester.post("/runs", START, headers={"Idempotency-Key": key}), "invalid")
    assert not Run.objects.exists()


@pytest.mark.parametrize("waiting", [True, False])
def test_a_cancelled_run_says_by_whom(waiting: bool, callers: Callers, clerk: SpecFile) -> None:
    run = to_pause(clerk)[0] if waiting else begin(clerk)
    body = callers.operator.post(f"/runs/{run.uuid}/cancel", {"reason": "not needed"}).json()
    assert (body["success"], body["id"]) == (True, str(run.uuid))
    assert body["state"]["status"] == "cancelled"
    assert body["state"]["error"] == "cancelled by operator: not needed"
    assert AuditEntry.objects.get(act="cancel").actor == "operator"
    work()
    assert callers.requester.get(f"/runs/{run.uuid}").json() == {**body}


def test_cancelling_an_old_id_cancels_what_its_chain_does_now(callers: Callers, clerk: SpecFile) -> None:
    run, key = to_pause(clerk)
    second = callers.approver.post(f"/approvals/{key}/approve?wait=0", {"approved": True}).json()["id"]
    body = callers.operator.post(f"/runs/{run.uuid}/cancel", {}).json()
    assert (body["id"], body["state"]["status"]) == (second, "cancelled")


def test_an_interrupted_run_can_be_tried_again_or_given_up(callers: Callers, clerk: SpecFile) -> None:
    run = begin(clerk)
    interrupt(run)
    for act in ("retry", "give-up"):
        check(callers.operator.post(f"/runs/{run.uuid}/{act}", {}), "invalid")
    state = callers.requester.get(f"/runs/{run.uuid}").json()["state"]
    assert (state["status"], state["error"]) == ("interrupted", "lost its worker")
    retried = callers.operator.post(f"/runs/{run.uuid}/retry", {"reason": "it is safe"}).json()
    assert retried["resumedFrom"] == str(run.uuid)
    work()
    successor = Run.objects.get(uuid=retried["id"])
    assert key_of(successor)
    other = begin(clerk)
    interrupt(other)
    given_up = callers.operator.post(f"/runs/{other.uuid}/give-up", {"reason": "lost"}).json()
    assert (given_up["id"], given_up["state"]["status"]) == (str(other.uuid), "failed")
    assert "given up by operator: lost" in given_up["state"]["error"]


def test_integers_keep_their_digits_in_answers(callers: Callers, clerk: SpecFile) -> None:
    response = callers.requester.send("/webhook/clerk", b'{"n": 12345678901234567890123, "f": 3.0}')
    assert Run.objects.get(uuid=response.json()["id"]).input == '{"n":12345678901234567890123,"f":3}'


def test_options_name_the_methods_and_head_has_no_body(callers: Callers, clerk: SpecFile) -> None:
    response = callers.operator.send("/runs", b"", method="OPTIONS")
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["Allow"] == "GET, POST, HEAD, OPTIONS"
    response = callers.operator.send("/runs", b"", method="HEAD")
    assert (response.status_code, response.content) == (200, b"")
