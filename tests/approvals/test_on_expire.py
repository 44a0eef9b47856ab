"""`on_expire: execute_tool`: a worker calls because nobody decided in time, then the run ends expired (spec 1.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from approvals.errors import ApprovalNotFound
from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.policies import ANSWERS, a_pay, a_sign, member, text_of, written
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, to_pause, work
from workflows.engine import jsontext
from workflows.engine.gates import EXPIRED
from workflows.errors import NotPossible
from workflows.models import Attempt, Run, Status
from workflows.reading import own_state, run_state
from workflows.registry import SpecFile
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = "expires_in: 10m, on_expire: execute_tool(tell)"


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


def paths(tools: FakeTools) -> list[str]:
    return [request.url.rpartition("/")[2] for request in tools.requests]


def expired(spec: SpecFile, clock: Clock) -> tuple[Run, str]:
    """A run that waited in vain; no worker has come by since."""
    run, key = to_pause(spec)
    clock.advance(601)
    assert (expire_due(), expire_due()) == (1, 0)
    return run, key


@pytest.mark.parametrize("make", [a_sign, a_pay])
def test_the_sweep_queues_and_a_worker_calls(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock, make: Any
) -> None:
    run, key = expired(make(tmp_path, POLICY, url=tools.url), clock)
    assert (newest(run).status, paths(tools)) == (Status.QUEUED, []), "a sweep calls nobody"
    assert ApprovalRequest.objects.get().status == "expired"
    assert not StateRecord.objects.exists()
    work()
    state = run_state(run)
    assert (state["status"], state["error"], paths(tools)) == ("expired", EXPIRED, ["tell"])
    told, end = state["trace"]
    assert (told["step"], told["status"], told["output"]) == ("sign.on_expire", "completed", {"told": True})
    assert (end["step"], end["status"]) == ("sign", "expired")
    with pytest.raises(ApprovalNotFound) as late:
        decide(key, approved=True, actor=acting(people.approver))
    assert late.value.extra["decision"]["outcome"] == "expired"
    assert newest(run).ended_at is not None


def test_the_audit_says_that_it_was_nobody_and_names_the_run_that_calls(
    tmp_path: Path, tools: FakeTools, clock: Clock
) -> None:
    run, _ = expired(a_sign(tmp_path, POLICY, url=tools.url), clock)
    entry = AuditEntry.objects.get()
    assert json.loads(entry.policy)["rule"] == "nobody decided in time; on_expire: execute_tool(tell)"
    assert (entry.act, entry.outcome, entry.surface, entry.actor_user_id) == ("expire", "expired", "system", None)
    assert entry.successor == str(newest(run).uuid)


def test_the_tool_sees_that_nobody_decided(tmp_path: Path, tools: FakeTools, clock: Clock) -> None:
    why = '"{{ decision.reason }}", said: "{{ decision.approved }}", key: "{{ input }}"'
    run, _ = expired(a_sign(tmp_path, POLICY, url=tools.url, why=why), clock)
    work()
    (call,) = tools.requests
    assert jsontext.loads(call.body.decode()) == {"why": EXPIRED, "said": False, "key": "go"}
    assert call.header("idempotency-key") == f"{run.uuid}-0-on_expire"


def test_a_tool_that_fails_leaves_the_run_expired_and_says_so(tmp_path: Path, clock: Clock) -> None:
    with FakeTools({**ANSWERS, "POST /tell": {"status": 500}}) as tools:
        run, _ = expired(a_sign(tmp_path, POLICY, url=tools.url), clock)
        work()
        state = run_state(run)
        assert state["status"] == "expired"
        assert state["error"].startswith(f'{EXPIRED}; Step "sign": on_expire failed: Tool "tell"')
        assert Attempt.objects.get().ended_at is not None


@pytest.mark.parametrize("change", ["changed", "gone"])
def test_under_a_changed_spec_nothing_is_called_and_the_run_says_so(
    tmp_path: Path, tools: FakeTools, clock: Clock, change: str
) -> None:
    spec = a_sign(tmp_path, POLICY, url=tools.url)
    run, _ = to_pause(spec)
    if change == "gone":
        spec.path.unlink()
    else:
        a_sign(tmp_path, POLICY + ", require_reason: always", url=tools.url)
    clock.advance(601)
    assert expire_due() == 1
    assert (work(), paths(tools)) == (0, [])
    state = run_state(run)
    assert state["status"] == "expired"
    assert "the tool tell was not called, because the spec's file is not the one" in state["error"]


def test_a_spec_that_changes_after_the_expiry_is_the_old_one_still(
    tmp_path: Path, tools: FakeTools, clock: Clock
) -> None:
    run, _ = expired(a_sign(tmp_path, POLICY, url=tools.url), clock)
    a_sign(tmp_path, "require_reason: always", url=tools.url)
    work()
    assert (run_state(run)["status"], paths(tools)) == ("expired", ["tell"])


def test_a_worker_that_cannot_drive_the_run_ends_it_expired_as_well(
    tmp_path: Path, tools: FakeTools, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = text_of(f"{{step: sign, type: approval, {POLICY}}}", url=tools.url)
    monkeypatch.setenv("OPENAI_API_KEY", "key-canary")
    spec = written(tmp_path, text.replace("provider: ollama,", "provider: openai, api_key: '${OPENAI_API_KEY}',"))
    run, _ = expired(spec, clock)
    monkeypatch.delenv("OPENAI_API_KEY")
    work()
    state = run_state(run)
    assert (state["status"], paths(tools)) == ("expired", [])
    assert state["error"].startswith(f"{EXPIRED}; ")
    assert "OPENAI_API_KEY" in state["error"]


def test_the_outputs_of_the_steps_before_are_kept_and_told(tmp_path: Path, tools: FakeTools, clock: Clock) -> None:
    steps = f"{{step: first, type: tool, tool: look}}\n    - {{step: sign, type: approval, {POLICY}}}"
    run, _ = expired(written(tmp_path, text_of(steps, url=tools.url, why='"{{ first.reason }}"')), clock)
    work()
    assert [record["step"] for record in run_state(run)["trace"]] == ["first", "sign.on_expire", "sign"]
    assert jsontext.loads(tools.requests[-1].body.decode()) == {"why": "look at the sum"}
    assert own_state(run)["status"] == "awaiting_approval", "what the old run was, by its own record"


def test_a_recorded_request_is_only_closed(tmp_path: Path, tools: FakeTools, clock: Clock) -> None:
    run = begin(a_sign(tmp_path, f"mode: record, {POLICY}", url=tools.url))
    work()
    clock.advance(601)
    assert (expire_due(), work()) == (1, 0)
    assert (paths(tools), run_state(run)["status"]) == (["last"], "completed")


def test_an_expired_run_cannot_be_retried(tmp_path: Path, tools: FakeTools, people: People, clock: Clock) -> None:
    run, _ = expired(a_sign(tmp_path, POLICY, url=tools.url), clock)
    work()
    with pytest.raises(NotPossible, match="only an interrupted or failed run"):
        retry_run(newest(run), actor=acting(people.operator), reason="once more")


def test_the_votes_that_were_not_enough_are_in_the_proof_of_the_expiry(tmp_path: Path, clock: Clock) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}, expires_in: 1h, on_expire: fail"))
    decide(key, approved=True, actor=acting(member("asha")))
    clock.advance(3601)
    assert expire_due() == 1
    evaluated = json.loads(AuditEntry.objects.get(act="expire").policy)
    assert evaluated["rule"] == "nobody decided in time; on_expire: fail"
    assert [vote["by"] for vote in evaluated["votes"]] == ["asha"]
