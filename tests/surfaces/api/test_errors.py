"""Every refusal has one status, and every endpoint answers it in one shape."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from tests.surfaces.api.conftest import Callers
from tests.workbench import ASKING, begin, to_pause, work, write_spec
from workflows import registry
from workflows.api.errors import STATUS, failure_of
from workflows.errors import Refusal
from workflows.models import Run, Status
from workflows.registry import SpecFile

UNKNOWN = "00000000-0000-4000-8000-000000000000"
CONTRACT = {
    "approval_not_found": 404,
    "already_resolved": 409,
    "spec_changed": 409,
    "action_changed": 409,
    "nothing_pending": 409,
    "not_possible": 409,
    "not_authenticated": 401,
    "not_allowed": 403,
    "invalid": 400,
    "run_not_found": 404,
    "agent_not_found": 404,
    "too_large": 413,
    "unsupported_media_type": 415,
    "method_not_allowed": 405,
    "spec_broken": 503,
    "busy": 503,
}


def check(response: Any, code: str, **extra: Any) -> dict[str, Any]:
    """The one shape; the body, for what else it says."""
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["code"]) == (STATUS[code], code), body
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert body["success"] is False
    assert body["error"]
    for name, value in extra.items():
        assert body[name] == value, body
    return body


def all_refusals(kind: type[Refusal] = Refusal) -> set[type[Refusal]]:
    return {kind}.union(*(all_refusals(sub) for sub in kind.__subclasses__()))


def test_the_table_is_the_contract() -> None:
    assert CONTRACT.items() <= STATUS.items()
    assert {code: STATUS[code] for code in STATUS.keys() - CONTRACT.keys()} == {
        "not_found": 404,
        "internal": 500,
        "model_unavailable": 500,
    }


def test_no_refusal_of_ours_is_missing_from_the_table() -> None:
    assert {refusal.code for refusal in all_refusals()} <= STATUS.keys()


@pytest.mark.parametrize("code", sorted(STATUS))
def test_every_code_is_answered_in_the_one_shape(code: str) -> None:
    refusal = Refusal("said so", fact=1)
    refusal.code = code
    answer = failure_of(refusal)
    assert answer.status == STATUS[code]
    assert answer.body == {"success": False, "code": code, "error": "said so", "fact": 1}
    assert ("WWW-Authenticate" in answer.headers) == (code == "not_authenticated")
    assert ("Retry-After" in answer.headers) == (code == "busy")


@pytest.mark.parametrize("error", [OperationalError("database is locked"), InterfaceError("connection closed")])
def test_a_database_that_is_locked_or_away_is_busy_and_says_when_to_come_back(error: Exception) -> None:
    answer = failure_of(error)
    assert (answer.status, answer.body["code"], answer.headers["Retry-After"]) == (503, "busy", "1")
    assert "locked" not in answer.body["error"]


def test_what_nobody_foresaw_is_logged_and_told_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = failure_of(ZeroDivisionError("the canary sings"))
    assert (answer.status, answer.body["code"]) == (500, "internal")
    assert "canary" not in str(answer.body)
    assert caplog.records[0].exc_info is not None


def test_a_missing_table_is_no_reason_to_come_back() -> None:
    assert failure_of(OperationalError("no such table: workflows_run")).body["code"] == "internal"


@pytest.mark.django_db(transaction=True)
def test_a_stream_is_refused_like_everything_else(callers: Callers) -> None:
    path = f"/runs/{UNKNOWN}/events"
    check(callers.nobody.get(path), "not_authenticated")
    check(callers.stranger.get(path), "not_allowed")
    check(callers.stranger.get("/runs/17/events"), "not_allowed")
    check(callers.operator.get(path + "/"), "run_not_found")
    refused = callers.operator.post(path, {})
    check(refused, "method_not_allowed")
    assert refused.headers["Allow"] == "GET, HEAD"


@pytest.mark.django_db
class TestOnEveryEndpoint:
    """The codes as the routes give them."""

    def test_not_authenticated(self, callers: Callers) -> None:
        for path in ("/runs", f"/runs/{UNKNOWN}", f"/runs/{UNKNOWN}/events", "/approvals", f"/approvals/{UNKNOWN}"):
            response = callers.nobody.get(path)
            check(response, "not_authenticated")
            assert response.headers["WWW-Authenticate"].startswith("Bearer")
        for path in (
            "/webhook/clerk",
            "/webhook",
            "/runs",
            f"/runs/{UNKNOWN}/approve",
            f"/approvals/{UNKNOWN}/approve",
        ):
            check(callers.nobody.send(path, b"[broken"), "not_authenticated")

    def test_method_not_allowed(self, callers: Callers) -> None:
        for path in ("/runs", f"/runs/{UNKNOWN}", "/approvals", "/webhook/clerk"):
            response = callers.operator.send(path, b"", method="DELETE")
            check(response, "method_not_allowed")
            assert response.headers["Allow"]
        check(callers.operator.get("/webhook/clerk"), "method_not_allowed")
        check(callers.operator.get(f"/approvals/{UNKNOWN}/approve"), "method_not_allowed")

    def test_run_not_found(self, callers: Callers) -> None:
        for run_id in (UNKNOWN, "17", "x", "%00", "{" + UNKNOWN + "}x", "é"):
            check(callers.operator.get(f"/runs/{run_id}"), "run_not_found")
            for act in ("cancel", "retry", "give-up"):
                check(callers.operator.post(f"/runs/{run_id}/{act}", {"reason": "so"}), "run_not_found")
            check(callers.approver.post(f"/runs/{run_id}/approve", {"approved": True}), "run_not_found")

    def test_a_query_that_no_database_could_hold_is_invalid(self, callers: Callers) -> None:
        for path in ("/runs?agent=%00", "/approvals?agent=a%00", "/approvals?run=%00", "/runs?after=%00"):
            check(callers.approver.get(path), "invalid")

    def test_agent_not_found(self, callers: Callers, clerk: SpecFile) -> None:
        check(callers.requester.post("/runs", {"agent": "ghost", "input": ""}), "agent_not_found")
        check(callers.requester.post("/webhook/ghost", {}), "agent_not_found")

    def test_approval_not_found(self, callers: Callers) -> None:
        for key in (UNKNOWN, "17", "%00", UNKNOWN.replace("-", "")):
            check(callers.approver.get(f"/approvals/{key}"), "approval_not_found")
            check(callers.approver.post(f"/approvals/{key}/approve", {"approved": True}), "approval_not_found")

    def test_nothing_pending_and_not_possible_name_the_status(self, callers: Callers, clerk: SpecFile) -> None:
        run = begin(clerk)
        approve = callers.approver.post(f"/runs/{run.uuid}/approve", {"approved": True})
        check(approve, "nothing_pending", status="running")
        work()
        check(callers.operator.post(f"/runs/{run.uuid}/retry", {"reason": "so"}), "not_possible")
        check(callers.operator.post(f"/runs/{run.uuid}/give-up", {"reason": "so"}), "not_possible")
        check(callers.operator.post(f"/runs/{run.uuid}/retry", {"reason": " "}), "invalid")
        assert callers.operator.post(f"/runs/{run.uuid}/cancel", {"reason": "so"}).status_code == 200
        check(callers.operator.post(f"/runs/{run.uuid}/cancel", {}), "not_possible", status="cancelled")

    def test_spec_changed_carries_both_hashes_and_keeps_the_record(self, callers: Callers, clerk: SpecFile) -> None:
        _, key = to_pause(clerk)
        text = clerk.path.read_text()
        clerk.path.write_text(text.replace("Paying clerk", "Another clerk"))
        changed = callers.approver.post(f"/approvals/{key}/approve", {"approved": True})
        body = check(changed, "spec_changed", recorded=clerk.hash[:12])
        assert body["present"] != body["recorded"]
        clerk.path.write_text("[")
        broken = callers.approver.post(f"/approvals/{key}/approve", {"approved": True})
        check(broken, "spec_changed", recorded=clerk.hash[:12], present=None)
        clerk.path.write_text("# restored\n" + text)
        assert callers.approver.post(f"/approvals/{key}/approve?wait=0", {"approved": True}).status_code == 200

    def test_action_changed_carries_both_digests(self, callers: Callers, clerk: SpecFile) -> None:
        _, key = to_pause(clerk)
        present = callers.approver.get(f"/approvals/{key}").json()["digest"]
        response = callers.approver.post(f"/approvals/{key}/approve", {"approved": True, "digest": "1:00"})
        check(response, "action_changed", shown="1:00", present=present)
        sent = {"approved": True, "digest": present}
        assert callers.approver.post(f"/approvals/{key}/approve?wait=0", sent).status_code == 200

    def test_spec_broken_says_what_is_broken(self, callers: Callers, clerk: SpecFile, folder: Path) -> None:
        registry.registry().files()
        clerk.path.write_text("agent: [")
        for response in (
            callers.requester.post("/runs", {"agent": "clerk", "input": ""}),
            callers.requester.post("/webhook/clerk", {}),
            callers.requester.post("/webhook", {}),
        ):
            assert check(response, "spec_broken")["errors"]
        assert not Run.objects.exists()

    def test_model_unavailable_is_told_with_a_code(self, callers: Callers, folder: Path) -> None:
        keyed = ASKING.replace("provider: ollama,", 'provider: openai, api_key: "${{NO_SUCH_KEY}}",')
        write_spec(folder, keyed)
        for response in (
            callers.requester.post("/runs", {"agent": "clerk", "input": ""}),
            callers.requester.post("/webhook/clerk", {}),
        ):
            assert "NO_SUCH_KEY" in check(response, "model_unavailable")["error"]
        assert not Run.objects.filter(status=Status.QUEUED).exists()

    def test_too_large_names_the_limit(self, callers: Callers, clerk: SpecFile) -> None:
        check(callers.requester.send("/webhook/clerk", b"x" * 1048577, "text/plain"), "too_large", limit=1048576)
        assert callers.requester.send("/webhook/clerk", b"x" * 1048576, "text/plain").status_code == 201

    def test_an_address_that_means_nothing(self, callers: Callers) -> None:
        for path in ("/nope", "/runs/a/b", "/runs/a/b/c/", "/approvals/a/b", "/webhook/a/b", "/healthz/x", "/admin2"):
            check(callers.operator.get(path), "not_found")
            check(callers.nobody.post(path, {}), "not_found")

    def test_the_admin_keeps_its_own_pages(self, callers: Callers) -> None:
        response = callers.nobody.get("/admin/nope/")
        assert not response.headers.get("Content-Type", "").startswith("application/json")

    def test_a_foreign_host_name_is_refused_in_the_one_shape(self, callers: Callers) -> None:
        check(callers.operator.get("/runs", headers={"Host": "evil.example"}), "invalid")
