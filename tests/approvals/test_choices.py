"""The choices of docs/choices.md about a run that was resumed: what it keeps, and what it looks at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from approvals.models import ApprovalRequest
from approvals.services import decide
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.workbench import HEAD, acting, key_of, to_pause, work, write_spec
from workflows.models import Status
from workflows.reading import run_state
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

VARS = """\
vars:
  most: {{ type: number, default: 5 }}
  zone: {{ type: string, default: "${{ZONE}}" }}
"""
ASKING = """\
  workflow:
    - {{ step: sign, type: approval, message: "Up to {{{{ vars.most }}}} in {{{{ vars.zone }}}}?" }}
"""
BRANCHING = """\
  tools:
    - {{ name: look, action: http_request, method: GET, url: "{url}/look" }}
  workflow:
    - step: check
      type: condition
      if: vars.zone = "here"
      then: request_human_approval
      else: execute_tool(look)
"""


def with_vars(rest: str) -> str:
    return HEAD.replace("agent:", f"{VARS}agent:", 1) + rest


def test_what_was_given_to_a_run_is_kept_and_the_environment_is_read_again(
    tmp_path: Path, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZONE", "here")
    run, key = to_pause(write_spec(tmp_path, with_vars(ASKING)), overrides={"most": 7})
    assert ApprovalRequest.objects.get(key=key).reason == "Up to 7 in here?"

    monkeypatch.setenv("ZONE", "there")
    decide(key, approved=True, actor=acting(people.approver))
    assert "pendingApproval" not in run_state(run)
    work()

    again = newest(run)
    assert again.status == Status.AWAITING
    assert ApprovalRequest.objects.get(run=again).reason == "Up to 7 in there?"
    decide(key_of(again), approved=True, actor=acting(people.approver))
    work()
    assert run_state(run)["status"] == "completed"


def test_a_decision_is_taken_only_at_the_gate_that_it_was_given_for(
    tmp_path: Path, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZONE", "here")
    with FakeTools({"GET /look": {"json": {}}}) as tools:
        run, key = to_pause(write_spec(tmp_path, with_vars(BRANCHING), url=tools.url))
        decide(key, approved=True, actor=acting(people.approver))
        monkeypatch.setenv("ZONE", "there")
        work()

        state = run_state(run)
        assert state["status"] == "failed"
        assert "no longer applies" in state["error"]
        assert tools.requests == []
