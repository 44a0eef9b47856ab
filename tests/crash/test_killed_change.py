"""Whoever edits or rebinds is killed at any point: nothing of it happened, or all of it (scenario 16)."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from approvals.models import ApprovalRequest, AuditEntry, Edit, Vote
from approvals.records import fits, peek
from approvals.services import decide
from tests.approvals.editables import ANSWERS, a_payment
from tests.conftest import People, allow
from tests.crash.conftest import Child, dies
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause, work
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

EDITS = '{"action.body.json.amount": 7}'


@pytest.fixture
def paying(tmp_path: Path, tools: FakeTools, monkeypatch: pytest.MonkeyPatch) -> SpecFile:
    tools.script = dict(ANSWERS)
    monkeypatch.setenv("PAY_HOST", tools.url)
    return a_payment(tmp_path, tools.url, "approvers: {quorum: 2}")


def amounts(tools: FakeTools) -> list[int]:
    return [request.json()["amount"] for request in tools.requests if "/pay" in request.url]


def voted(paying: SpecFile, people: People) -> tuple[Run, str]:
    run, key = to_pause(paying)
    decide(key, approved=True, actor=acting(people.approver))
    return run, key


def second() -> User:
    return allow(User.objects.create(username="second"), "approvals.decide")


@pytest.mark.parametrize("point", ["edit.before_claim", "edit.written"])
def test_an_edit_that_died_before_its_commit_never_was(
    point: str, paying: SpecFile, tools: FakeTools, people: People, child: Child
) -> None:
    run, key = voted(paying, people)
    dies(child("edit", key, "approver", EDITS, faults=f"{point}=kill", PAY_HOST=tools.url))
    assert (Vote.objects.count(), Edit.objects.count()) == (1, 0)
    assert not AuditEntry.objects.filter(act="edit").exists()
    decide(key, approved=True, actor=acting(second()))
    work()
    assert (newest(run).status, amounts(tools)) == (Status.COMPLETED, [120])


def test_an_edit_that_was_committed_stands(paying: SpecFile, tools: FakeTools, people: People, child: Child) -> None:
    run, key = voted(paying, people)
    dies(child("edit", key, "approver", EDITS, faults="edit.committed=kill", PAY_HOST=tools.url))
    assert (Vote.objects.count(), Edit.objects.count()) == (0, 1)
    for user in (people.approver, second()):
        decide(key, approved=True, actor=acting(user))
    work()
    assert (newest(run).status, amounts(tools)) == (Status.COMPLETED, [7])


@pytest.mark.parametrize("point", ["rebind.before_claim", "rebind.written", "rebind.committed"])
def test_a_rebind_happened_whole_or_not_at_all(
    point: str, paying: SpecFile, tools: FakeTools, people: People, child: Child
) -> None:
    run, key = voted(paying, people)
    before = ApprovalRequest.objects.get(key=key).spec_hash
    text = paying.text.replace("    - {step: pay,", "    - {step: extra, type: tool, tool: fetch}\n    - {step: pay,")
    paying.path.write_text(text.replace("[1, two]", "[1, three]"), encoding="utf-8")
    dies(child("rebind", key, "operator", faults=f"{point}=kill", PAY_HOST=tools.url))
    request, present = ApprovalRequest.objects.get(key=key), Run.objects.get(pk=run.pk)
    record = peek(request)
    assert record is not None
    assert fits(request, record)
    done = point == "rebind.committed"
    assert (present.spec_hash, request.spec_hash != before) == (request.spec_hash, done)
    assert (present.step_index, request.step_index, record["step_index"]) == ((2, 2, 2) if done else (1, 1, 1))
    assert (Vote.objects.exists(), AuditEntry.objects.filter(act="rebind").exists()) == (not done, done)
    if not done:
        paying.path.write_text(paying.text, encoding="utf-8")
    for user in (second(), people.approver) if done else (second(),):
        decide(key, approved=True, actor=acting(user))
    work()
    assert newest(run).status == Status.COMPLETED
    assert [request.url.removeprefix(tools.url) for request in tools.requests] == [
        "/draft",
        "/pay?team=blue",
        "/receipt",
    ]
