"""What waits, what the decider is shown, and the decision over HTTP."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx2
import pytest
from django.db import connections

from approvals.models import ApprovalRequest, AuditEntry
from tests.conftest import Clock
from tests.surfaces.api.conftest import Callers, until
from tests.surfaces.api.test_errors import UNKNOWN, check
from tests.workbench import ASKING, begin, to_pause, work, write_spec
from workflows.draining import draining
from workflows.models import Run
from workflows.registry import SpecFile


@pytest.mark.django_db
class TestReading:
    def test_the_list_says_what_waits_and_nothing_of_what_it_is_about(self, callers: Callers, clerk: SpecFile) -> None:
        run, key = to_pause(clerk, input="canary input")
        page = callers.approver.get("/approvals").json()
        (line,) = page["approvals"]
        assert page["next"] is None
        assert line.keys() == {
            "key",
            "agent",
            "runId",
            "step",
            "kind",
            "phase",
            "reason",
            "createdAt",
            "expiresAt",
        }
        assert (line["key"], line["runId"], line["agent"]) == (key, str(run.uuid), "clerk")
        assert line["createdAt"].endswith("Z")

    def test_the_filters_narrow_the_list(self, callers: Callers, clerk: SpecFile, folder: Path) -> None:
        run, key = to_pause(clerk)
        other = write_spec(folder, ASKING, agent_id="other", name="other.yaml")
        _, other_key = to_pause(other)

        def keys(query: str) -> list[str]:
            return [line["key"] for line in callers.approver.get(f"/approvals?{query}").json()["approvals"]]

        assert keys("") == [key, other_key]
        assert keys("agent=other") == [other_key]
        assert keys("agent=ghost") == []
        assert keys(f"run={run.uuid}") == [key]
        assert keys(f"run={UNKNOWN}") == []
        for query in (
            "run=17",
            "limit=0",
            "limit=201",
            "limit=x",
            "limit=-1",
            "after=x",
            "after=-1",
            "atfer=1",
            "run=",
        ):
            check(callers.approver.get(f"/approvals?{query}"), "invalid")
        callers.approver.post(f"/approvals/{key}/approve?wait=0", {"approved": True})
        work()
        assert len(keys(f"run={run.uuid}")) == 1, "the old id stands for the newest run of its chain"

    def test_the_detail_has_what_the_decider_needs(self, callers: Callers, clerk: SpecFile) -> None:
        _, key = to_pause(clerk, input="lunch")
        detail = callers.approver.get(f"/approvals/{key}").json()
        assert detail["message"] == "Go on with lunch?"
        assert detail["digest"].startswith("1:")
        assert detail["may"]["decide"] is True
        assert callers.operator.get(f"/approvals/{key}").json()["may"]["decide"] is False
        assert {"action", "outputs", "policy", "votes"} <= detail.keys()

    def test_what_expired_is_not_listed_and_reads_as_expired(
        self, callers: Callers, clerk: SpecFile, clock: Clock
    ) -> None:
        _, key = to_pause(clerk)
        clock.advance(7 * 24 * 3600 + 1)
        assert callers.approver.get("/approvals").json()["approvals"] == []
        body = check(callers.approver.get(f"/approvals/{key}"), "approval_not_found")
        assert body["decision"]["outcome"] == "expired"

    def test_reading_decides_nothing(self, callers: Callers, clerk: SpecFile) -> None:
        _, key = to_pause(clerk)
        for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE"):
            for path in (f"/approvals/{key}", f"/approvals/{key}/approve", f"/approvals/{key}/approve?approved=true"):
                callers.approver.send(path, b'{"approved": true}', method=method)
        assert ApprovalRequest.objects.get().status == "open"


@pytest.mark.django_db
class TestDeciding:
    @pytest.mark.parametrize("by", ["/approvals/{key}/approve", "/runs/{run}/approve", "/runs/{key}/approve/"])
    def test_the_answer_is_the_fresh_run(self, by: str, callers: Callers, clerk: SpecFile) -> None:
        run, key = to_pause(clerk)
        path = by.format(key=key, run=run.uuid)
        body = callers.approver.post(f"{path}?wait=0", {"approved": True, "reason": "fine"}).json()
        successor = Run.objects.get(resumed_from=run)
        assert body["success"] is True
        assert (body["id"], body["resumedFrom"]) == (str(successor.uuid), str(run.uuid))
        assert body["state"]["status"] == "running"
        entry = AuditEntry.objects.get(act="decide")
        assert (entry.actor, entry.surface, entry.reason, entry.digest_sent) == ("approver", "api", "fine", False)
        assert entry.actor_detail == "token test"

    def test_nulls_stand_for_absent_fields(self, callers: Callers, clerk: SpecFile) -> None:
        _, key = to_pause(clerk)
        sent = {"approved": True, "reason": None, "answers": None, "edits": None, "digest": None}
        assert callers.approver.post(f"/approvals/{key}/approve?wait=0", sent).status_code == 200

    def test_a_second_decision_is_told_who_made_the_first(self, callers: Callers, clerk: SpecFile) -> None:
        run, key = to_pause(clerk)
        callers.approver.post(f"/approvals/{key}/approve?wait=0", {"approved": False})
        body = check(callers.approver.post(f"/approvals/{key}/approve", {"approved": True}), "approval_not_found")
        assert body["decision"]["by"] == "approver"
        assert "rejected by approver" in body["error"]
        again = callers.approver.post(f"/runs/{run.uuid}/approve", {"approved": True})
        check(again, "nothing_pending", status="rejected")

    def test_a_key_in_capitals_is_no_other_key(self, callers: Callers, clerk: SpecFile) -> None:
        _, key = to_pause(clerk)
        callers.approver.post(f"/approvals/{key.upper()}/approve?wait=0", {"approved": False})
        body = check(callers.approver.get(f"/approvals/{key.upper()}"), "approval_not_found")
        assert body["decision"]["outcome"] == "rejected"


@pytest.mark.django_db(transaction=True)
class TestWaiting:
    def test_the_answer_waits_for_the_next_pause(self, callers: Callers, clerk: SpecFile) -> None:
        _, key = to_pause(clerk)
        stop = threading.Event()

        def worker() -> None:
            while not stop.is_set():
                work()
                stop.wait(0.05)
            connections.close_all()

        thread = threading.Thread(target=worker)
        thread.start()
        try:
            body = callers.approver.post(f"/approvals/{key}/approve?wait=20", {"approved": True}).json()
        finally:
            stop.set()
            thread.join()
        assert body["state"]["status"] == "awaiting_approval"
        assert body["state"]["pendingApproval"]["step"] == "second"

    def test_nobody_waits_longer_than_asked(
        self, callers: Callers, clerk: SpecFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("approvals.api.views.WAIT_SECONDS", 60.0)
        _, key = to_pause(clerk)
        began = time.monotonic()
        body = callers.approver.post(f"/approvals/{key}/approve?wait=0.7", {"approved": True}).json()
        assert body["state"]["status"] == "running"
        assert 0.7 <= time.monotonic() - began < 30

    def test_a_server_that_drains_answers_who_waits(self, callers: Callers, clerk: SpecFile) -> None:
        _, key = to_pause(clerk)
        answers = []

        def wait() -> None:
            answers.append(callers.approver.post(f"/approvals/{key}/approve?wait=60", {"approved": True}))
            connections.close_all()

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: Run.objects.count() == 2)
        draining.set()
        try:
            thread.join(30)
        finally:
            draining.clear()
        assert answers[0].json()["state"]["status"] == "running"

    def test_a_rejection_is_final_at_once(self, callers: Callers, clerk: SpecFile) -> None:
        run, _ = to_pause(clerk)
        began = time.monotonic()
        body = callers.approver.post(f"/runs/{run.uuid}/approve?wait=60", {"approved": False, "reason": "no"}).json()
        assert body["state"]["status"] == "rejected"
        assert time.monotonic() - began < 30
        assert begin(clerk).pk != run.pk

    def test_those_who_wait_keep_no_connection_from_the_others(
        self, server: str, callers: Callers, clerk: SpecFile
    ) -> None:
        """More wait at once than the pool has connections."""
        keys = [to_pause(clerk)[1] for _ in range(40)]
        url = f"{server}/approvals/{{}}/approve?wait=60"
        headers = callers.approver.headers
        statuses: list[int] = []

        def wait(key: str) -> None:
            statuses.append(
                httpx2.post(url.format(key), json={"approved": True}, headers=headers, timeout=120).status_code
            )

        threads = [threading.Thread(target=wait, args=(key,)) for key in keys]
        for thread in threads:
            thread.start()
        until(lambda: Run.objects.filter(resumed_from__isnull=False).count() == 40)
        response = httpx2.get(f"{server}/runs", headers=headers, timeout=30)
        draining.set()
        for thread in threads:
            thread.join(60)
        draining.clear()
        assert response.status_code == 200
        assert statuses == [200] * 40
