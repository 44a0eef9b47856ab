"""`valid_for`: an approval goes stale unless something was called under it in time; then it is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.models import ApprovalRequest, AuditEntry
from approvals.queue import detail
from approvals.recall import withdraw
from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_pay, a_sign, text_of, written
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, key_of, to_pause, work
from workflows.advance import advance
from workflows.draining import draining
from workflows.engine.gates import MAX_REOPENS
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3600


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


def paths(tools: FakeTools) -> list[str]:
    return [request.url.rpartition("/")[2] for request in tools.requests]


def approve(run: Run, people: People) -> Run:
    return decide(key_of(newest(run)), approved=True, actor=acting(people.approver)).run


@pytest.mark.parametrize("make", [a_pay, a_sign])
def test_in_time_it_takes_effect_and_after_its_end_it_is_asked_for_again(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock, make: object
) -> None:
    spec = (a_pay if make is a_pay else a_sign)(tmp_path, "valid_for: 1h", url=tools.url)
    run, key = to_pause(spec)
    approve(run, people)
    clock.advance(HOUR + 1)  # no worker was there
    work()
    waits = newest(run)
    assert (waits.status, paths(tools)) == (Status.AWAITING, [])
    told = detail(key_of(waits), acting(people.approver))["reopenedFrom"]
    assert told["key"] == key
    assert told["what_differs"].startswith("nothing else: the approval held until ")
    assert run_state(run)["trace"] == []
    approve(run, people)
    clock.advance(HOUR - 1)
    work()
    assert run_state(run)["status"] == "completed"
    assert paths(tools) == (["pay", "last"] if make is a_pay else ["last"])


def test_it_does_not_count_as_something_else_that_would_run(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    run, _ = to_pause(a_pay(tmp_path, "valid_for: 1h", url=tools.url))
    for _ in range(MAX_REOPENS + 2):
        approve(run, people)
        clock.advance(HOUR + 1)
        work()
    assert newest(run).status == Status.AWAITING
    assert ApprovalRequest.objects.count() == MAX_REOPENS + 3
    approve(run, people)
    work()
    assert (run_state(run)["status"], paths(tools)) == ("completed", ["pay", "last"])


def test_the_tool_of_the_decision_is_the_first_call(tmp_path: Path, people: People, clock: Clock) -> None:
    """Begun in time, the rest may be late: the second tool answers only after the end."""
    with FakeTools({**ANSWERS, "POST /pay": [{"status": 429}, {"json": {"paid": True}}]}) as tools:
        policy = "valid_for: 5m, on_decision: {approved: execute_tool(tell)}"
        pay = f"approval: {{{policy}}}, retry: {{max: 2, backoff: fixed, base_ms: 600000, max_delay_ms: 600000}}"
        text = text_of("{step: sign, type: tool, tool: pay}", url=tools.url, pay=pay)
        run, _ = to_pause(written(tmp_path, text))
        approve(run, people)
        work()
        assert (newest(run).status, paths(tools)) == (Status.QUEUED, ["tell", "pay"])
        clock.advance(601)
        work()
        assert (run_state(run)["status"], paths(tools)) == ("completed", ["tell", "pay", "pay", "last"])


def test_a_wait_for_its_turn_counts(tmp_path: Path, tools: FakeTools, people: People, clock: Clock) -> None:
    pay = "approval: {valid_for: 5m}, pace: {rps: 0.002}"
    spec = written(tmp_path, text_of("{step: sign, type: tool, tool: pay}", url=tools.url, pay=pay))
    first, second = to_pause(spec)[0], to_pause(spec)[0]
    for run in (first, second):
        approve(run, people)
    work()
    assert paths(tools) == ["pay", "last"]
    assert newest(second).status == Status.QUEUED, "its turn is in 500 s, and the approval ends before"
    clock.advance(501)
    work()
    assert (newest(second).status, paths(tools)) == (Status.AWAITING, ["pay", "last"])


def test_an_approval_step_is_used_by_the_first_call_behind_it(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    run, _ = to_pause(a_sign(tmp_path, "valid_for: 1h", url=tools.url))
    successor = approve(run, people)
    # A process that is about to end has passed the gate and gives the run back before its next step.
    Run.objects.filter(pk=successor.pk).update(
        step_index=1, step="last", outputs='{"outputs":{"sign":{"approved":true}},"without_output":[],"order":["sign"]}'
    )
    clock.advance(HOUR + 1)
    work()
    waits = newest(run)
    assert (waits.status, waits.step, paths(tools)) == (Status.AWAITING, "sign", [])
    approve(run, people)
    work()
    assert (run_state(run)["status"], paths(tools)) == ("completed", ["last"])
    assert run_state(run)["finalOutput"] == {"sign": {"approved": True}, "last": {"done": True}}


def test_a_retry_asks_again_only_where_nothing_was_called_in_time(tmp_path: Path, people: People, clock: Clock) -> None:
    with FakeTools({**ANSWERS, "POST /pay": [{"status": 500}, {"json": {"paid": True}}]}) as tools:
        run, _ = to_pause(a_pay(tmp_path, "valid_for: 1h", url=tools.url))
        approve(run, people)
        work()
        assert newest(run).status == Status.FAILED
        clock.advance(HOUR + 1)
        retry_run(newest(run), actor=acting(people.operator), reason="it answers now")
        work()
        assert (run_state(run)["status"], paths(tools)) == ("completed", ["pay", "pay", "last"])
        run, _ = to_pause(a_pay(tmp_path, "valid_for: 1h", url=tools.url))
        Run.objects.filter(pk=approve(run, people).pk).update(status=Status.INTERRUPTED)
        clock.advance(HOUR + 1)
        retry_run(newest(run), actor=acting(people.operator), reason="nothing was called")
        work()
        assert (newest(run).status, len(tools.requests)) == (Status.AWAITING, 3)


def test_a_rules_approval_goes_stale_as_well(tmp_path: Path, tools: FakeTools, people: People, clock: Clock) -> None:
    pay = "approval: {valid_for: 5m, auto: {approve_if: 'true'}}, pace: {rps: 0.002}"
    spec = written(tmp_path, text_of("{step: sign, type: tool, tool: pay}", url=tools.url, pay=pay))
    first, second = begin(spec), begin(spec)
    work()
    clock.advance(501)
    work()
    assert (newest(first).status, newest(second).status) == (Status.COMPLETED, Status.AWAITING)
    approve(second, people)
    assert [entry.surface for entry in AuditEntry.objects.order_by("id")] == ["rule", "rule", "api"]


def test_with_a_recall_both_count_from_the_grant(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    run, _ = to_pause(a_pay(tmp_path, "recall: 10m, valid_for: 1h", url=tools.url))
    approve(run, people)
    clock.advance(601)
    work()
    assert run_state(run)["status"] == "completed"
    run, key = to_pause(a_pay(tmp_path, "recall: 10m, valid_for: 1h", url=tools.url))
    approve(run, people)
    clock.advance(300)
    withdraw(key, actor=acting(people.approver), reason="a moment")
    approve(run, people)
    clock.advance(HOUR + 1)
    work()
    assert newest(run).status == Status.AWAITING
    assert paths(tools) == ["pay", "last"]


def test_a_process_that_drains_between_gate_and_call_changes_nothing_of_that(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    run, _ = to_pause(a_sign(tmp_path, "valid_for: 1h", url=tools.url))
    approve(run, people)
    draining.set()
    try:
        advance("default", str(newest(run).uuid))
    finally:
        draining.clear()
    assert newest(run).status == Status.QUEUED
    clock.advance(HOUR + 1)
    work()
    assert (newest(run).status, paths(tools)) == (Status.AWAITING, [])
