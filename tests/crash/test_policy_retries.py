"""What a gate called is done: an operator's retry calls it again only for another decision (spec 1.2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_pay, a_sign, text_of, written
from tests.conftest import People
from tests.fakes_tools import Answer, FakeTools
from tests.workbench import acting, begin, key_of, to_pause, work
from workflows import codec
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.registry import SpecFile
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = "auto: {check: execute_tool(look)}, on_decision: {approved: execute_tool(tell)}"
ONCE: list[Answer] = [{"status": 500}, {"json": {"done": True}}]


def paths(tools: FakeTools) -> list[str]:
    return [request.url.rpartition("/")[2] for request in tools.requests]


def again(run: Run, people: People) -> Run:
    """An operator's retry, driven to its next pause or its end."""
    retry_run(newest(run), actor=acting(people.operator), reason="once more")
    work()
    return newest(run)


@pytest.mark.parametrize(("make", "failing", "between"), [(a_pay, "pay", ["pay"]), (a_sign, "last", [])])
def test_a_retry_calls_neither_the_check_nor_the_tool_of_the_decision_again(
    tmp_path: Path, people: People, make: Callable[..., SpecFile], failing: str, between: list[str]
) -> None:
    with FakeTools({**ANSWERS, f"POST /{failing}": ONCE}) as tools:
        run, key = to_pause(make(tmp_path, POLICY, url=tools.url))
        decide(key, approved=True, actor=acting(people.approver))
        work()
        assert (newest(run).status, paths(tools)) == (Status.FAILED, ["look", "tell", failing])
        assert again(run, people).status == Status.COMPLETED
        assert paths(tools) == ["look", "tell", failing, *between, "last"]
        told = [record["step"] for record in run_state(run)["trace"]]
        assert told == ["sign.check", "sign.on_decision", "sign", "last"], "what was called is still told"


def test_a_request_that_is_opened_again_calls_for_the_new_decision_under_a_key_of_its_own(
    tmp_path: Path, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeTools({**ANSWERS, "POST /pay": {"status": 500}, "POST /other/pay": {"json": {"paid": True}}}) as tools:
        monkeypatch.setenv("PAY_HOST", tools.url)
        text = text_of("{step: sign, type: tool, tool: pay}", url=tools.url, pay=f"approval: {{{POLICY}}}")
        run, key = to_pause(written(tmp_path, text.replace(f'"{tools.url}/pay"', '"${PAY_HOST}/pay"')))
        decide(key, approved=True, actor=acting(people.approver))
        work()
        assert newest(run).status == Status.FAILED
        monkeypatch.setenv("PAY_HOST", f"{tools.url}/other")
        asked = again(run, people)
        assert (asked.status, paths(tools)) == (Status.AWAITING, ["look", "tell", "pay"])
        decide(key_of(asked), approved=True, actor=acting(people.approver))
        work()
        assert newest(run).status == Status.COMPLETED, newest(run).error
        assert paths(tools) == ["look", "tell", "pay", "tell", "pay", "last"]
        keys = [request.header("idempotency-key") for request in tools.requests if "tell" in request.url]
        assert keys == [f"{run.uuid}-0-on_decision", f"{run.uuid}-0-on_decision-1"]


def test_a_check_that_came_to_no_decision_is_called_again(tmp_path: Path, people: People) -> None:
    with FakeTools({**ANSWERS, "GET /look": {"json": {"decision": "ask"}}}) as tools:
        run = begin(a_pay(tmp_path, "auto: {check: execute_tool(look)}", url=tools.url))
        kept = codec.dump_outputs({"sign.check": {"decision": "approve"}})
        Run.objects.filter(pk=run.pk).update(status=Status.INTERRUPTED, outputs=kept, step="sign")
        assert again(run, people).status == Status.AWAITING, "nobody approved what would be called now"
        assert paths(tools) == ["look"]
