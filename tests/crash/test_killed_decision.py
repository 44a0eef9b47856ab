"""A decider killed at any point: still pending with nothing consumed, or decided with its successor queued."""

from __future__ import annotations

import pytest

from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from statestore.models import StateRecord
from tests.conftest import People
from tests.crash.conftest import Child, dies
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause, work
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("point", ["decide.record_read", "decide.before_claim", "decide.claimed"])
def test_before_the_commit_nothing_is_consumed(
    point: str, spec: SpecFile, tools: FakeTools, people: People, child: Child
) -> None:
    run, key = to_pause(spec)
    dies(child("decide", key, "approver", "yes", faults=f"{point}=kill"))
    assert StateRecord.objects.filter(key=f"approval:{key}").count() == 1
    assert ApprovalRequest.objects.get(key=key).status == "open"
    assert AuditEntry.objects.count() == 0
    assert Run.objects.count() == 1
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert run_state(run)["status"] == "completed"
    assert [request.method for request in tools.requests] == ["GET", "POST", "POST"]


def test_after_the_commit_nothing_is_lost(spec: SpecFile, tools: FakeTools, people: People, child: Child) -> None:
    run, key = to_pause(spec)
    dies(child("decide", key, "approver", "yes", faults="decide.committed=kill"))
    assert AuditEntry.objects.get(key=key).outcome == "approved"
    assert Run.objects.get(resumed_from=run).status == Status.QUEUED
    work()
    assert run_state(run)["status"] == "completed"
    assert [request.method for request in tools.requests] == ["GET", "POST", "POST"]
