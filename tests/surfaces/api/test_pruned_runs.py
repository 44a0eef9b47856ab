"""A run whose content was removed reads as one that ended so, wherever it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from pytest_django.fixtures import Settings

from approvals.services import decide
from statestore.clock import now
from tests.conftest import Clock, People
from tests.surfaces.api.conftest import Callers, until
from tests.surfaces.api.streams import stream
from tests.workbench import acting, begin, to_pause, work
from workflows.api.authentication import Standing
from workflows.errors import NotPossible
from workflows.idempotency import Delivery
from workflows.live import Closed, Tailer, Watch
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.retention.pruning import prune, prune_decisions
from workflows.runs import newest, start_run
from workflows.successors import leave

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 24 * 3600


@pytest.fixture
def rejected(clerk: SpecFile, people: People, clock: Clock, settings: Settings) -> Run:
    """The first run of a chain that was rejected long ago, and pruned."""
    settings.KAMPONG_KEEP_REJECTED = "90d"
    run, key = to_pause(clerk)
    decide(key, approved=False, reason="not this one", actor=acting(people.approver))
    clock.advance(91 * DAY)
    assert prune() == 1
    run.refresh_from_db()
    assert run.pruned_at is not None
    return run


def test_its_state_says_how_it_ended_and_when_it_was_pruned(rejected: Run, callers: Callers) -> None:
    shown = callers.requester.get(f"/runs/{rejected.uuid}").json()
    assert shown["resumedAs"] == str(newest(rejected).uuid)
    pruned_at = shown["state"].pop("prunedAt")
    assert shown["state"] == {"status": "rejected", "trace": [], "error": "not this one"}
    own = callers.requester.get(f"/runs/{rejected.uuid}?own=1").json()
    assert own["state"] == shown["state"] | {"prunedAt": pruned_at}
    (line,) = callers.requester.get("/runs").json()["runs"]
    assert line["state"] == {"status": "rejected", "error": "not this one", "prunedAt": pruned_at}
    refused = callers.operator.post(f"/runs/{rejected.uuid}/cancel", {"reason": "late"})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_possible")
    late = callers.approver.post(f"/runs/{rejected.uuid}/approve", {"approved": True})
    assert (late.status_code, late.json()["code"]) == (409, "nothing_pending")


def test_its_stream_is_its_state_and_then_over(server: str, rejected: Run, callers: Callers) -> None:
    url, headers = f"{server}/runs/{rejected.uuid}/events", callers.requester.headers
    last = newest(rejected)
    with stream(url, headers) as events:
        (only,) = events.rest()
    assert (only.kind, only.data["state"]["status"]) == ("state", "rejected")
    assert "prunedAt" in only.data["state"]
    assert only.id == f"{last.uuid}/{last.last_event}"
    # Whoever was in the middle of it, in the run before or in the last one, is told how it ended.
    for seen in (f"{rejected.uuid}/1", f"{last.uuid}/0"):
        with stream(url, headers | {"Last-Event-ID": seen}) as events:
            assert events.rest() == [only]
    assert httpx2.get(url, headers=headers | {"Last-Event-ID": only.id}).status_code == 204


def test_it_can_be_neither_retried_nor_given_up(
    clerk: SpecFile, callers: Callers, clock: Clock, settings: Settings
) -> None:
    settings.KAMPONG_KEEP_INTERRUPTED = "90d"
    run, _ = to_pause(clerk)
    Run.objects.filter(pk=run.pk).update(status=Status.INTERRUPTED, ended_at=now())
    run.requests.update(status="cancelled", closed_at=now())
    clock.advance(91 * DAY)
    assert prune() == 1
    for act in ("retry", "give-up"):
        refused = callers.operator.post(f"/runs/{run.uuid}/{act}", {"reason": "why not"})
        assert (refused.status_code, refused.json()["code"]) == (409, "not_possible")
        assert "what it read and made was removed at" in refused.json()["error"]
    with pytest.raises(NotPossible, match="is not kept any more"):
        leave(run, Status.INTERRUPTED)  # by somebody who read it just before
    assert Run.objects.count() == 1


@pytest.mark.parametrize("kept", ["forever", "1d"])
def test_a_repeat_of_what_started_it_still_learns_its_id(
    kept: str, clerk: SpecFile, people: People, callers: Callers, clock: Clock, settings: Settings
) -> None:
    settings.KAMPONG_KEEP_REJECTED, settings.KAMPONG_KEEP_DECISIONS = "1h", kept
    key = {"Idempotency-Key": "once"}
    body = {"agent": "clerk", "input": "go"}
    first = callers.requester.post("/runs", body, headers=key).json()["id"]
    run = Run.objects.get(uuid=first)
    delivery = Delivery(key="hook", seconds=10 * DAY)
    delivered = start_run(clerk, input="go", actor=acting(people.requester), delivery=delivery).run
    work()
    for one in (run, delivered):
        decide(str(one.requests.get().key), approved=False, reason="no", actor=acting(people.approver))
    clock.advance(23 * 3600)
    assert prune() == 2
    again = callers.requester.post("/runs", body, headers=key)
    assert (again.status_code, again.json()["id"], again.json()["state"]["status"]) == (200, first, "rejected")
    clock.advance(2 * DAY)
    assert prune_decisions() == (2 if kept == "1d" else 0)
    seen = start_run(clerk, input="go", actor=acting(people.requester), delivery=delivery)
    assert (seen.repeated, str(seen.run.uuid)) == (True, str(delivered.uuid))
    assert (seen.run.pk is None) == (kept == "1d")


def test_with_the_decision_gone_the_audit_still_says_what_became_of_the_key(
    rejected: Run, callers: Callers, clock: Clock, settings: Settings
) -> None:
    key = str(rejected.requests.get().key)
    settings.KAMPONG_KEEP_DECISIONS = "100d"
    clock.advance(10 * DAY)
    assert prune_decisions() == 1
    for path in (f"/runs/{rejected.uuid}", f"/runs/{rejected.uuid}/events"):
        gone = callers.requester.get(path)
        assert (gone.status_code, gone.json()["code"]) == (404, "run_not_found")
    for answer in (
        callers.approver.get(f"/approvals/{key}"),
        callers.approver.post(f"/approvals/{key}/approve", {"approved": True}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "approval_not_found")
        assert answer.json()["decision"]["outcome"] == "rejected"


def test_whoever_watches_a_run_that_goes_is_sent_away(tmp_path: Path, clerk: SpecFile, people: People) -> None:
    gone, pruned = begin(clerk), begin(clerk)
    told: list[Any] = []
    tailer = Tailer()

    def deliver(item: object) -> bool:
        told.append(item)
        return True

    standing = Standing(user_id=people.requester.pk, permission="workflows.view_run", token_digest=None)
    for run in (gone, pruned):
        tailer.watch(Watch(run_id=run.pk, position=0, standing=standing, deliver=deliver))
    Run.objects.filter(pk=gone.pk).delete()
    Run.objects.filter(pk=pruned.pk).update(pruned_at=now(), last_event=3)
    until(lambda: len(told) == 2 and not tailer.running)
    assert {type(item) for item in told} == {Closed}
    assert {item.reason for item in told} == {
        "the run is not kept any more",
        "the events are not kept any more; connect again",
    }
