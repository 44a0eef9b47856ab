"""What a policy does by itself in a stored run: rules, checks, tools on a decision, a rejection that goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.models import ApprovalRequest, AuditEntry
from approvals.queue import detail
from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_pay, a_sign
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, to_pause, work
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


def paths(tools: FakeTools) -> list[str]:
    return [request.url.rpartition("/")[2] for request in tools.requests]


def trace(run: Run) -> list[tuple[str, str]]:
    return [(record["step"], record["status"]) for record in run_state(run)["trace"]]


def test_a_rule_that_approves_needs_nobody_and_is_in_the_audit(tmp_path: Path, tools: FakeTools) -> None:
    rule = "action.method = 'POST'"
    run = begin(a_pay(tmp_path, f'auto: {{approve_if: "{rule}"}}', url=tools.url))
    work()
    assert newest(run).status == Status.COMPLETED
    assert Run.objects.count() == 1
    assert not ApprovalRequest.objects.exists()
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.outcome, entry.actor, entry.surface) == ("decide", "approved", "rule", "rule")
    assert json.loads(entry.policy)["rule"] == rule
    assert entry.digest.startswith("1:")
    assert paths(tools) == ["pay", "last"]


def test_a_rule_that_rejects_ends_the_run_or_lets_it_go_on(tmp_path: Path, tools: FakeTools) -> None:
    for on_reject, status in (("stop", Status.REJECTED), ("continue", Status.COMPLETED)):
        policy = f"auto: {{reject_if: \"action.method = 'POST'\"}}, on_reject: {on_reject}"
        run = begin(a_pay(tmp_path, policy, url=tools.url))
        work()
        assert newest(run).status == status
        assert AuditEntry.objects.order_by("id").last().outcome == "rejected"  # type: ignore[union-attr]
    assert paths(tools) == ["last"]


def test_what_a_check_said_is_shown_to_whoever_decides(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, key = to_pause(a_pay(tmp_path, "auto: {check: execute_tool(look)}", url=tools.url))
    shown = detail(key, acting(people.approver))
    assert shown["advice"] == {"rule": "execute_tool(look)", "reason": "look at the sum"}
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert paths(tools) == ["look", "pay", "last"]
    assert trace(run) == [("sign.check", "completed"), ("sign", "completed"), ("last", "completed")]
    assert run_state(run)["finalOutput"] == {"sign": {"paid": True}, "last": {"done": True}}


def test_a_rejection_shows_what_the_check_gave_and_ends_the_run(
    tmp_path: Path, tools: FakeTools, people: People
) -> None:
    run, key = to_pause(a_pay(tmp_path, "auto: {check: execute_tool(look)}", url=tools.url))
    decide(key, approved=False, reason="no", actor=acting(people.approver))
    assert trace(run) == [("sign.check", "completed"), ("sign", "rejected")]
    assert paths(tools) == ["look"]


def test_a_tool_on_approval_is_called_first_with_the_decision_as_data(
    tmp_path: Path, tools: FakeTools, people: People
) -> None:
    policy = "on_decision: {approved: execute_tool(tell)}"
    why = "\"{{ decision.by & ': ' & decision.reason }}\""
    run, key = to_pause(a_pay(tmp_path, policy, url=tools.url, why=why))
    decide(key, approved=True, reason="${HOME} {{ 1 }}", actor=acting(people.approver))
    work()
    assert paths(tools) == ["tell", "pay", "last"]
    assert tools.requests[0].json() == {"why": "approver: ${HOME} {{ 1 }}"}
    assert trace(run) == [("sign.on_decision", "completed"), ("sign", "completed"), ("last", "completed")]
    keys = [request.header("idempotency-key") for request in tools.requests]
    assert keys == [f"{run.uuid}-0-on_decision", f"{run.uuid}-0", f"{run.uuid}-1"]


def test_a_tool_on_rejection_is_called_and_the_run_ends_rejected(
    tmp_path: Path, tools: FakeTools, people: People
) -> None:
    policy = "on_decision: {rejected: execute_tool(tell)}"
    run, key = to_pause(a_pay(tmp_path, policy, url=tools.url))
    decide(key, approved=False, reason="no", actor=acting(people.approver))
    work()
    assert (newest(run).status, paths(tools)) == (Status.REJECTED, ["tell"])
    assert run_state(run)["error"] == "no"


def test_a_tool_on_a_decision_that_fails_stops_before_the_action_and_a_retry_keeps_the_decision(
    tmp_path: Path, people: People
) -> None:
    with FakeTools({**ANSWERS, "POST /tell": [{"status": 500}, {"json": {}}]}) as tools:
        run, key = to_pause(a_pay(tmp_path, "on_decision: {approved: execute_tool(tell)}", url=tools.url))
        decide(key, approved=True, actor=acting(people.approver))
        work()
        failed = newest(run)
        assert (failed.status, paths(tools)) == (Status.FAILED, ["tell"])
        assert "on_decision failed" in failed.error
        retry_run(failed, actor=acting(people.operator), reason="once more")
        work()
        assert newest(run).status == Status.COMPLETED
        assert paths(tools) == ["tell", "tell", "pay", "last"]
        assert AuditEntry.objects.filter(act="decide").count() == 1


def test_a_check_and_a_later_call_of_the_same_tool_are_two_calls(tmp_path: Path, people: People) -> None:
    with FakeTools({**ANSWERS, "POST /tell": {"json": {"decision": "approve"}}}) as tools:
        policy = "auto: {check: execute_tool(tell)}, on_decision: {approved: execute_tool(tell)}"
        run = begin(a_pay(tmp_path, policy, url=tools.url))
        work()
        assert newest(run).status == Status.COMPLETED, newest(run).error
        assert paths(tools) == ["tell", "tell", "pay", "last"]


def test_a_rejection_that_goes_on_is_the_steps_output(tmp_path: Path, tools: FakeTools, people: People) -> None:
    for make in (a_sign, a_pay):
        run, key = to_pause(make(tmp_path, "on_reject: continue", url=tools.url))
        outcome = decide(key, approved=False, reason="not now", actor=acting(people.approver))
        assert outcome.run.status == Status.QUEUED
        work()
        state = run_state(run)
        assert state["finalOutput"] == {"sign": {"approved": False, "reason": "not now"}, "last": {"done": True}}
        assert AuditEntry.objects.get(key=key).outcome == "rejected"
    assert paths(tools) == ["last", "last"]


def test_a_rejection_under_a_changed_spec_ends_the_run_and_calls_nothing(
    tmp_path: Path, tools: FakeTools, people: People
) -> None:
    policy = "on_reject: continue, on_decision: {rejected: execute_tool(tell)}"
    spec = a_pay(tmp_path, policy, url=tools.url)
    run, key = to_pause(spec)
    spec.path.write_text(spec.text.replace("goal: Pay what is due.", "goal: Pay more."))
    decide(key, approved=False, actor=acting(people.approver))
    work()
    assert (newest(run).status, paths(tools)) == (Status.REJECTED, [])
