"""Approvals that wait for their recall, and how they are taken back, for the tests of that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from approvals.models import ApprovalRequest
from approvals.recall import withdraw
from approvals.services import decide
from tests.approvals.policies import a_pay
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause
from workflows.models import Run


def paths(tools: FakeTools) -> list[str]:
    return [request.url.rpartition("/")[2] for request in tools.requests]


def approved(folder: Path, tools: FakeTools, people: People, policy: str = "", **decision: Any) -> tuple[Run, str]:
    """A run whose approval was given and can be withdrawn for ten minutes."""
    run, key = to_pause(a_pay(folder, f"recall: 10m{policy}", url=tools.url))
    decide(key, approved=True, actor=acting(people.approver), **decision)
    return run, key


def taken_back(key: str, people: People, **changed: Any) -> ApprovalRequest:
    return withdraw(key, **{"actor": acting(people.approver), "reason": "wrong sum", **changed})
