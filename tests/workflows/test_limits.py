"""Large and deep values: what is within a limit goes through a pause and comes back, what is over it fails by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from approvals.models import ApprovalRequest
from approvals.queue import detail
from approvals.services import decide
from statestore.models import StateRecord
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.workbench import HEAD, acting, begin, to_pause, work, write_spec
from workflows.engine import jsontext
from workflows.models import Run, Status
from workflows.reading import run_json, run_state
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1024 * 1024
TOOL = '  tools:\n    - {{name: look, action: http_request, method: GET, url: "{url}/x"{more}}}\n  workflow:\n'
ASK = '    - {{step: ask, type: approval, message: "Go on?"}}\n'
TEXT = ", response: {mode: text}"


def looking(folder: Path, tools: FakeTools, *, times: int = 1, more: str = "") -> Any:
    """A spec that looks so many times, each look a step of its own, and then asks."""
    steps = "".join(f"    - {{{{step: look{n}, type: tool, tool: look}}}}\n" for n in range(1, times + 1))
    return write_spec(folder, HEAD + TOOL + steps + ASK, url=tools.url, more=more)


def answering(content: str) -> FakeTools:
    return FakeTools({"GET /x": {"text": content}})


def ended(spec: Any) -> Run:
    run = begin(spec)
    work()
    run.refresh_from_db()
    return run


@pytest.mark.parametrize("depth", [197, 200])
def test_an_output_as_deep_as_any_may_be_is_kept_shown_and_resumed(tmp_path: Path, people: People, depth: int) -> None:
    deep = jsontext.loads("[" * depth + "]" * depth)
    with answering(jsontext.dumps(deep)) as tools:
        run, key = to_pause(looking(tmp_path, tools))
        assert run_state(run)["trace"][0]["output"] == deep
        assert detail(key, acting(people.approver))["outputs"] == {"look1": deep}
        decide(key, approved=True, actor=acting(people.approver))
        work()
        assert run_json(run)["state"]["finalOutput"]["look1"] == deep


def test_an_answer_that_is_nested_deeper_fails_the_step_by_name(tmp_path: Path) -> None:
    with answering("[" * 201 + "]" * 201) as tools:
        run = ended(looking(tmp_path, tools))
    assert (run.status, run.step) == (Status.FAILED, "look1")
    assert "nested deeper than 200 levels" in run.error


def test_an_output_of_one_mebibyte_is_kept_and_a_byte_more_fails_the_step(tmp_path: Path) -> None:
    with answering("x" * (MIB - 2)) as tools:  # two quotation marks around it
        to_pause(looking(tmp_path, tools, more=TEXT))
    with answering("x" * (MIB - 1)) as tools:
        run = ended(looking(tmp_path, tools, more=TEXT))
    assert (run.status, run.step) == (Status.FAILED, "look1")
    assert f"{MIB + 1} bytes" in run.error
    assert f"{MIB} bytes" in run.error
    assert run_state(run)["status"] == "failed"


def test_outputs_that_only_together_pass_the_limit_of_a_record_fail_at_the_gate(tmp_path: Path) -> None:
    with answering("x" * (MIB - 2)) as tools:
        to_pause(looking(tmp_path, tools, times=7, more=TEXT))
        run = ended(looking(tmp_path, tools, times=8, more=TEXT))
    assert (run.status, run.step) == (Status.FAILED, "ask")
    assert f"at most {8 * MIB}" in run.error
    assert not ApprovalRequest.objects.filter(run=run).exists()
    assert StateRecord.objects.count() == 1  # the one that was within the limit
    assert newest(run).pk == run.pk
