"""What a recorded request calls on its decision, in a run of its own that names the first (spec 1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.errors import ApprovalNotFound
from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_sign
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.api.conftest import with_token
from tests.surfaces.cli.running import command
from tests.workbench import acting, begin, work
from workflows.engine import jsontext
from workflows.errors import SpecChanged
from workflows.models import Run, Status
from workflows.reading import run_json, run_state
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

BOTH = "mode: record, on_decision: {approved: execute_tool(tell), rejected: execute_tool(tell)}"


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


def paths(tools: FakeTools) -> list[str]:
    return [request.url.rpartition("/")[2] for request in tools.requests]


def recorded(folder: Path, tools: FakeTools, policy: str = BOTH, why: str = "none") -> tuple[Run, str]:
    """A run that went on to its end, and the key that it left."""
    run = begin(a_sign(folder, policy, url=tools.url, why=why))
    work()
    run.refresh_from_db()
    assert run.status == Status.COMPLETED, run.error
    return run, str(ApprovalRequest.objects.get(run=run).key)


@pytest.mark.parametrize("approved", [True, False])
def test_the_decision_starts_a_run_that_calls_the_tool_and_nothing_else(
    tmp_path: Path, tools: FakeTools, people: People, approved: bool
) -> None:
    run, key = recorded(tmp_path, tools)
    before = run_state(run)
    companion = decide(key, approved=approved, reason="seen", actor=acting(people.approver)).run
    assert (companion.purpose, companion.beside, companion.root, companion.resumed_from) == (
        "on_decision",
        run,
        None,
        None,
    )
    assert paths(tools) == ["last"]
    work()
    assert paths(tools) == ["last", "tell"]
    state = run_state(companion)
    assert (state["status"], state["finalOutput"]) == ("completed", {"sign.on_decision": {"told": True}})
    assert [record["step"] for record in state["trace"]] == ["sign.on_decision"]
    assert run_state(run) == before, "the first run is as it was"
    assert AuditEntry.objects.get().successor == str(companion.uuid)
    with pytest.raises(ApprovalNotFound):
        decide(key, approved=not approved, actor=acting(people.approver))
    assert Run.objects.count() == 2


def test_the_two_name_each_other(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, key = recorded(tmp_path, tools)
    assert "companions" not in run_json(run)
    companion = decide(key, approved=True, actor=acting(people.approver)).run
    assert run_json(companion)["beside"] == str(run.uuid)
    assert run_json(run)["companions"] == [str(companion.uuid)]
    assert str(run.uuid) in command("runs", "show", str(companion.uuid), "--as", "approver").out
    assert str(companion.uuid) in command("runs", "show", str(run.uuid), "--as", "approver").out


def test_over_rest_the_answer_is_the_run_that_calls(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, key = recorded(tmp_path, tools)
    answer = with_token(people.approver).post(f"/approvals/{key}/approve?wait=0", {"approved": True}).json()
    assert answer["beside"] == str(run.uuid)
    assert answer["state"]["status"] == "running"


def test_its_keys_are_those_of_its_own_root(tmp_path: Path, tools: FakeTools, people: People) -> None:
    _, key = recorded(tmp_path, tools, why='"{{ decision.reason }}"')
    companion = decide(key, approved=True, reason="seen", actor=acting(people.approver)).run
    work()
    call = tools.requests[-1]
    assert call.header("idempotency-key") == f"{companion.uuid}-0-on_decision"
    assert jsontext.loads(call.body.decode()) == {"why": "seen"}


def test_a_failure_is_its_own_and_can_be_retried(tmp_path: Path, people: People) -> None:
    with FakeTools({**ANSWERS, "POST /tell": [{"status": 500}, {"json": {"told": True}}]}) as tools:
        run, key = recorded(tmp_path, tools)
        companion = decide(key, approved=True, actor=acting(people.approver)).run
        work()
        assert (newest(companion).status, newest(run).status) == (Status.FAILED, Status.COMPLETED)
        retry_run(newest(companion), actor=acting(people.operator), reason="once more")
        work()
        again = newest(companion)
        assert (again.status, again.purpose, again.beside) == (Status.COMPLETED, "on_decision", run)
        assert paths(tools) == ["last", "tell", "tell"]
        assert run_state(companion)["finalOutput"] == {"sign.on_decision": {"told": True}}
        assert run_json(run)["companions"] == [str(again.uuid)]


def test_an_answer_without_a_tool_starts_nothing(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, key = recorded(tmp_path, tools, "mode: record, on_decision: {approved: execute_tool(tell)}")
    assert decide(key, approved=False, actor=acting(people.approver)).run == run
    assert (work(), Run.objects.count()) == (0, 1)


def test_under_a_changed_spec_nothing_is_approved_and_a_rejection_calls_nothing_and_says_so(
    tmp_path: Path, tools: FakeTools, people: People
) -> None:
    run, key = recorded(tmp_path, tools)
    a_sign(tmp_path, BOTH + ", require_reason: always", url=tools.url)
    with pytest.raises(SpecChanged):
        decide(key, approved=True, actor=acting(people.approver))
    assert decide(key, approved=False, actor=acting(people.approver)).run == run
    assert work() == 0
    entry = AuditEntry.objects.get()
    assert (entry.outcome, entry.successor) == ("rejected", "")
    assert "the spec changed" in jsontext.loads(entry.details)["not_called"]


def test_a_rule_that_decides_has_it_called_as_well_and_once(tmp_path: Path, tools: FakeTools) -> None:
    run = begin(a_sign(tmp_path, BOTH + ", auto: {approve_if: 'true'}", url=tools.url))
    work()
    companion = Run.objects.get(beside=run)
    assert (newest(run).status, companion.status) == (Status.COMPLETED, Status.COMPLETED)
    assert sorted(paths(tools)) == ["last", "tell"]
    entry = AuditEntry.objects.get()
    assert (entry.surface, entry.successor) == ("rule", str(companion.uuid))


def test_it_has_the_starter_of_the_first(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run = begin(a_sign(tmp_path, BOTH, url=tools.url), actor=acting(people.requester))
    work()
    key = str(ApprovalRequest.objects.get(run=run).key)
    companion = decide(key, approved=True, actor=acting(people.approver)).run
    assert companion.started_by_user == people.requester
