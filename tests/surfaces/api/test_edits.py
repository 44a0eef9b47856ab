"""Edits, proposals and rebinding over HTTP: the statuses and shapes of design 5.2, the actor being the caller alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.models import ApprovalRequest, AuditEntry
from tests.approvals.editables import ANSWERS, a_payment
from tests.approvals.policies import member
from tests.conftest import People, allow
from tests.fakes_tools import FakeTools
from tests.surfaces.api.conftest import with_token
from tests.workbench import to_pause, work
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

LESS: dict[str, Any] = {"action.body.json.amount": 100}


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as tools:
        monkeypatch.setenv("PAY_HOST", tools.url)
        monkeypatch.setenv("PAY_TOKEN", "tok-canary")
        yield tools


@pytest.fixture
def asha(db: None) -> User:
    return allow(member("asha"), "workflows.view_run")


@pytest.fixture
def spec(tmp_path: Path, tools: FakeTools) -> SpecFile:
    return a_payment(tmp_path, tools.url)


@pytest.fixture
def waiting(spec: SpecFile) -> tuple[Run, str]:
    return to_pause(spec)


def test_edit_and_approve_are_one_act(waiting: tuple[Run, str], tools: FakeTools, asha: User) -> None:
    run, key = waiting
    caller = with_token(asha)
    shown = caller.get(f"/approvals/{key}").json()
    assert shown["editable"][0] == {"path": "action.body.json.amount", "value": 120, "kind": "number"}
    assert "edits" not in shown
    body = {"approved": True, "edits": LESS, "digest": shown["digest"]}
    told = caller.post(f"/approvals/{key}/approve?wait=0", body)
    assert (told.status_code, told.json()["success"]) == (200, True)
    work()
    assert newest(run).status == Status.COMPLETED
    assert [request.json()["amount"] for request in tools.requests if "/pay" in request.url] == [100]


def test_a_proposal_is_answered_with_the_run_that_still_waits_and_is_shown(
    waiting: tuple[Run, str], asha: User
) -> None:
    run, key = waiting
    caller = with_token(asha)
    before = caller.get(f"/approvals/{key}").json()["digest"]
    told = caller.post(f"/approvals/{key}/edit", {"edits": LESS, "reason": "too much", "digest": before})
    body = told.json()
    assert (told.status_code, body["success"], body["id"]) == (200, True, str(run.uuid))
    assert body["state"]["status"] == "awaiting_approval"
    shown = caller.get(f"/approvals/{key}").json()
    assert shown["edits"]["changes"] == [{"path": "action.body.json.amount", "before": 120, "after": 100}]
    assert shown["edits"]["by"][0]["by"] == "asha"
    assert shown["editable"][0]["value"] == 100
    assert shown["digest"] != before
    stale = caller.post(f"/approvals/{key}/approve", {"approved": True, "digest": before})
    assert (stale.status_code, stale.json()["code"], stale.json()["present"]) == (
        409,
        "action_changed",
        shown["digest"],
    )


BAD: list[tuple[str, dict[str, Any], list[str]]] = [
    ("approve", {"approved": True, "edits": {"draft.who": 5, "ghost": 1}}, ["edits.draft.who", "edits.ghost"]),
    ("approve", {"approved": True, "edits": [1]}, ["edits"]),
    ("approve", {"approved": False, "edits": LESS}, ["edits"]),
    ("edit", {"edits": {"draft.who": None}}, ["edits.draft.who"]),
    ("edit", {"edits": {}}, ["edits"]),
    ("edit", {"edits": None}, ["edits"]),
    ("edit", {}, ["edits"]),
    ("edit", {"edits": LESS, "user": "ben"}, ["user"]),
    ("edit", {"edits": LESS, "reason": 5}, ["reason"]),
    ("rebind", {"reason": " "}, ["reason"]),
    ("rebind", {}, ["reason"]),
    ("rebind", {"reason": "x", "actor": "ben"}, ["actor"]),
]


@pytest.mark.parametrize(("verb", "body", "paths"), BAD)
def test_bad_requests_name_each_field_and_consume_nothing(
    waiting: tuple[Run, str], asha: User, verb: str, body: dict[str, Any], paths: list[str]
) -> None:
    _, key = waiting
    told = with_token(allow(asha, "approvals.rebind")).post(f"/approvals/{key}/{verb}", body)
    assert (told.status_code, told.json()["code"]) == (400, "invalid"), told.json()
    assert [error["path"] for error in told.json()["errors"]] == paths
    assert ApprovalRequest.objects.get(key=key).revision == 0
    assert not AuditEntry.objects.exists()


def test_rebinding_needs_its_permission_whatever_the_key(
    waiting: tuple[Run, str], spec: SpecFile, asha: User, people: People
) -> None:
    run, key = waiting
    spec.path.write_text(spec.text.replace("team: blue", "team: red"), encoding="utf-8")
    unknown = "00000000-0000-4000-8000-000000000000"
    for one in (key, unknown):
        told = with_token(asha).post(f"/approvals/{one}/rebind", {"reason": "new"})
        assert (told.status_code, told.json()["code"]) == (403, "not_allowed")
    caller = with_token(people.operator)
    assert caller.post(f"/approvals/{unknown}/rebind", {"reason": "new"}).status_code == 404
    shown = caller.get(f"/approvals/{key}").json()["drift"]
    assert (shown["place"], shown["canRebind"], shown["whyNot"]) == ("on", True, "")
    assert [one["state"] for one in shown["steps"]] == ["same"] * 3
    assert [(one["name"], one["state"]) for one in shown["others"]] == [("tool pay", "changed")]
    refused = with_token(asha).post(f"/approvals/{key}/approve", {"approved": True})
    assert (refused.status_code, refused.json()["code"]) == (409, "spec_changed")
    told = caller.post(f"/approvals/{key}/rebind", {"reason": "new"})
    assert (told.status_code, told.json()["id"], told.json()["state"]["status"]) == (
        200,
        str(run.uuid),
        "awaiting_approval",
    )
    again = caller.post(f"/approvals/{key}/rebind", {"reason": "new"})
    assert (again.status_code, again.json()["code"], again.json()["status"]) == (
        409,
        "not_possible",
        "awaiting_approval",
    )
    assert with_token(asha).post(f"/approvals/{key}/approve?wait=0", {"approved": True}).status_code == 200


def test_decided_requests_are_told_as_such(waiting: tuple[Run, str], asha: User) -> None:
    _, key = waiting
    caller = with_token(allow(asha, "approvals.rebind"))
    caller.post(f"/approvals/{key}/approve?wait=0", {"approved": False})
    for verb, body in (("edit", {"edits": LESS}), ("rebind", {"reason": "new"})):
        told = caller.post(f"/approvals/{key}/{verb}", body)
        assert (told.status_code, told.json()["code"]) == (404, "approval_not_found")
        assert told.json()["decision"]["outcome"] == "rejected"
