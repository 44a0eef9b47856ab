"""What a policy decided, called or recorded is neither lost nor done twice when a worker dies (spec 1.2)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from tests.approvals.policies import ANSWERS, text_of, written
from tests.conftest import Clock, People
from tests.crash.conftest import Child, dies
from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, key_of, work
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

JUDGE = "{step: judge, type: action, action: Judge, confidence_gate: true}"
RAILS = """\
  guardrails: {confidence_threshold: 0.8, fallback_action: escalate_to_human}
  approvals: {POLICY}
  workflow:
"""


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels({"judge": {"result": "pay twice", "confidence": 0.2}}) as server:
        yield server


def unsure(folder: Path, models: FakeModels, tools: FakeTools, policy: str) -> SpecFile:
    text = text_of(JUDGE, url=tools.url).replace("  workflow:\n", RAILS.replace("POLICY", policy), 1)
    return written(folder, text.replace("name: test-model", f'name: test-model, base_url: "{models.url}"'))


def a_look(decision: str) -> FakeTools:
    return FakeTools({**ANSWERS, "GET /look": {"json": {"decision": decision, "reason": "I looked"}}})


def paths(tools: FakeTools) -> list[str]:
    return [request.url.rpartition("/")[2] for request in tools.requests]


def taken_over(run: Run, clock: Clock) -> Run:
    """Another worker finds it, and drives it."""
    clock.advance(61)
    assert recover().requeued == 1
    work()
    return newest(run)


@pytest.mark.parametrize("policy", ["auto: {reject_if: '$exists(output)'}", "auto: {check: execute_tool(look)}"])
def test_a_rejection_by_a_rule_at_a_guardrail_is_not_forgotten(
    tmp_path: Path, models: FakeModels, clock: Clock, child: Child, policy: str
) -> None:
    with a_look("reject") as tools:
        run = begin(unsure(tmp_path, models, tools, policy))
        dies(child("advance", str(run.uuid), faults="run.before_final=kill"))
        assert AuditEntry.objects.get().outcome == "rejected"
        assert taken_over(run, clock).status == Status.REJECTED
        assert paths(tools) in ([], ["look"])
        entry = AuditEntry.objects.get()
        assert (entry.actor, entry.surface) == ("rule", "rule")
        assert models.count("judge") == 1


def test_an_approval_by_a_rule_is_not_asked_for_again(
    tmp_path: Path, models: FakeModels, clock: Clock, child: Child
) -> None:
    with a_look("approve") as tools:
        spec = unsure(tmp_path, models, tools, "auto: {check: execute_tool(look)}")
        run = begin(written(tmp_path, spec.text.replace(LAST, "")))
        dies(child("advance", str(run.uuid), faults="run.before_final=kill"))
        assert taken_over(run, clock).status == Status.COMPLETED
        assert paths(tools) == ["look"]
        assert AuditEntry.objects.count() == 1
        assert models.count("judge") == 1
        assert run_state(run)["finalOutput"] == {"judge": "pay twice"}


def test_a_guardrail_whose_check_was_under_way_is_entered_again(
    tmp_path: Path, models: FakeModels, people: People, clock: Clock, child: Child
) -> None:
    with FakeTools({**ANSWERS, "GET /look": [{"hang": 60}, {"json": {"decision": "reject"}}]}) as tools:
        run = begin(unsure(tmp_path, models, tools, "auto: {check: execute_tool(look)}"))
        worker = child("advance", str(run.uuid))
        end = time.monotonic() + 60
        while not tools.requests:
            assert time.monotonic() < end
            time.sleep(0.02)
        worker.end()
        run.refresh_from_db()
        assert (run.step_index, run.phase, run.step) == (0, "after", "judge")
        clock.advance(61)
        recover()
        run.refresh_from_db()
        assert run.status == Status.INTERRUPTED, "nobody knows what became of the call"
        retry_run(run, actor=acting(people.operator), reason="looking twice does no harm")
        work()
        assert newest(run).status == Status.REJECTED
        assert models.count("judge") == 1
        assert paths(tools) == ["look", "look"], "the step behind the guardrail never ran"


def paced(folder: Path, models: FakeModels, tools: FakeTools, rps: str) -> SpecFile:
    """Calls of the check are so far apart."""
    text = unsure(folder, models, tools, "auto: {check: execute_tool(look)}").text
    return written(folder, text.replace('/look"}', f'/look", pace: {{rps: {rps}}}}}'))


def waits_at_its_gate(run: Run, tools: FakeTools, models: FakeModels, people: People) -> None:
    """The check was called, a person is asked, and nothing behind the guardrail runs before the answer."""
    present = newest(run)
    assert (present.status, present.step_index, present.phase) == (Status.AWAITING, 0, "after")
    assert paths(tools) == ["look", "look"]
    decide(key_of(present), approved=True, actor=acting(people.approver))
    work()
    assert (newest(run).status, paths(tools)) == (Status.COMPLETED, ["look", "look", "last"])
    assert models.count("judge") == 2, "once a run"


def test_a_guardrail_whose_check_waits_for_its_turn_is_not_left(
    tmp_path: Path, models: FakeModels, people: People, clock: Clock
) -> None:
    with a_look("ask") as tools:
        spec = paced(tmp_path, models, tools, "0.002")
        begin(spec)
        run = begin(spec)
        work()
        run.refresh_from_db()
        assert (run.status, run.step_index, run.phase) == (Status.QUEUED, 0, "after"), "handed back until its turn"
        assert paths(tools) == ["look"]
        clock.advance(501)
        work()
        waits_at_its_gate(run, tools, models, people)


def test_nor_when_its_worker_is_killed_in_that_wait(
    tmp_path: Path, models: FakeModels, people: People, clock: Clock, child: Child
) -> None:
    with a_look("ask") as tools:
        spec = paced(tmp_path, models, tools, "0.05")
        begin(spec)
        work()
        run = begin(spec)
        dies(child("advance", str(run.uuid), faults="run.waiting=kill"))
        run.refresh_from_db()
        assert (run.status, run.step_index, run.phase) == (Status.RUNNING, 0, "after")
        taken_over(run, clock)
        waits_at_its_gate(run, tools, models, people)


def test_the_no_of_a_rule_at_a_guardrail_takes_the_place_of_the_answer_whoever_ends_the_run(
    tmp_path: Path, models: FakeModels, clock: Clock, child: Child
) -> None:
    with FakeTools(ANSWERS) as tools:
        spec = unsure(tmp_path, models, tools, "auto: {reject_if: '$exists(output)'}, on_reject: continue")
        run = begin(written(tmp_path, spec.text.replace(LAST, "")))
        dies(child("advance", str(run.uuid), faults="run.before_final=kill"))
        assert taken_over(run, clock).status == Status.COMPLETED
        no = {"approved": False, "reason": "rejected by the rule $exists(output)"}
        assert run_state(run)["finalOutput"] == {"judge": no}
        assert (AuditEntry.objects.count(), models.count("judge")) == (1, 1)


LAST = "    - {step: last, type: tool, tool: last}\n"
SIGN = '{step: sign, type: approval, message: "Really?", POLICY}'


def alone(folder: Path, tools: FakeTools, policy: str) -> SpecFile:
    """The approval step is the last one, so that the run ends with it."""
    text = text_of(SIGN.replace("POLICY", policy), url=tools.url)
    return written(folder, text.replace(LAST, ""))


@pytest.mark.parametrize("auto", ["", ", auto: {check: execute_tool(look)}"])
def test_a_recorded_request_is_opened_once(tmp_path: Path, clock: Clock, child: Child, auto: str) -> None:
    with FakeTools(ANSWERS) as tools:
        run = begin(alone(tmp_path, tools, f"mode: record{auto}"))
        dies(child("advance", str(run.uuid), faults="run.before_final=kill"))
        key = str(ApprovalRequest.objects.get().key)
        assert taken_over(run, clock).status == Status.COMPLETED
        assert str(ApprovalRequest.objects.get().key) == key
        assert run_state(run)["finalOutput"] == {"sign": {"recorded": True, "key": key}}


def test_a_rule_that_decides_a_recorded_request_is_in_the_audit_once(
    tmp_path: Path, clock: Clock, child: Child
) -> None:
    with a_look("approve") as tools:
        run = begin(alone(tmp_path, tools, "mode: record, auto: {check: execute_tool(look)}"))
        dies(child("advance", str(run.uuid), faults="run.before_final=kill"))
        assert taken_over(run, clock).status == Status.COMPLETED
        assert run_state(run)["finalOutput"] == {"sign": {"recorded": True}}
        assert not ApprovalRequest.objects.exists()
        assert AuditEntry.objects.get().outcome == "approved"


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("on_reject: continue", Status.COMPLETED),
        ("on_reject: continue, on_decision: {rejected: execute_tool(tell)}", Status.COMPLETED),
        ("on_decision: {rejected: execute_tool(tell)}", Status.REJECTED),
    ],
)
def test_the_no_of_a_rule_that_leaves_something_to_do_survives_its_worker(
    tmp_path: Path, clock: Clock, child: Child, more: str, status: Status
) -> None:
    with FakeTools(ANSWERS) as tools:
        run = begin(alone(tmp_path, tools, f"auto: {{reject_if: '$exists(input)'}}, {more}"))
        point = "run.before_attempt" if "tell" in more else "run.before_final"
        dies(child("advance", str(run.uuid), faults=f"{point}=kill"))
        assert taken_over(run, clock).status == status
        assert paths(tools) == (["tell"] if "tell" in more else [])
        assert AuditEntry.objects.filter(act="decide").count() == 1


def test_a_recorded_request_that_is_open_is_not_decided_by_a_rule_beside_it(
    tmp_path: Path, clock: Clock, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeTools(ANSWERS) as tools:
        policy = "mode: record, auto: {approve_if: 'vars.calm = \"yes\"'}"
        text = text_of(SIGN.replace("POLICY", policy), url=tools.url).replace(LAST, "")
        declared = "vars: {calm: {type: string, default: '${CALM}'}}\nagent:\n"
        run = begin(written(tmp_path, text.replace("agent:\n", declared, 1)))
        dies(child("advance", str(run.uuid), faults="run.before_final=kill", CALM="no"))
        key = str(ApprovalRequest.objects.get().key)
        monkeypatch.setenv("CALM", "yes")
        assert taken_over(run, clock).status == Status.COMPLETED
        assert run_state(run)["finalOutput"] == {"sign": {"recorded": True, "key": key}}
        assert not AuditEntry.objects.filter(act="decide").exists()


def test_a_rejection_that_does_not_end_the_run_survives_its_worker(
    tmp_path: Path, people: People, clock: Clock, child: Child
) -> None:
    with FakeTools(ANSWERS) as tools:
        run = begin(alone(tmp_path, tools, "on_reject: continue"))
        work()
        successor = decide(key_of(run), approved=False, reason="no", actor=acting(people.approver)).run
        dies(child("advance", str(successor.uuid), faults="run.before_final=kill"))
        assert taken_over(run, clock).status == Status.COMPLETED
        assert run_state(run)["finalOutput"]["sign"] == {"approved": False, "reason": "no"}
