"""A guardrail is not skipped by a crash between the unsure answer and its pause: a person is asked all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.models import ApprovalRequest
from approvals.services import decide
from tests.conftest import Clock, People
from tests.crash.conftest import Child, dies
from tests.fakes_models import FakeModels
from tests.workbench import HEAD, acting, begin, key_of, work, write_spec
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

UNSURE = HEAD.replace("name: test-model", 'name: test-model, base_url: "{models}"') + (
    """\
  guardrails: {{confidence_threshold: 0.8, fallback_action: escalate_to_human}}
  workflow:
    - {{step: judge, type: action, action: Judge, confidence_gate: true}}
    - {{step: after, type: action, action: Go on}}
"""
)


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels({"judge": {"result": "pay twice", "confidence": 0.2}, "after": {"object": "done"}}) as server:
        yield server


@pytest.fixture
def unsure(tmp_path: Path, models: FakeModels) -> SpecFile:
    return write_spec(tmp_path, UNSURE, models=models.url)


@pytest.mark.parametrize("point", ["run.attempt_open", "run.called", "run.before_pause", "run.paused"])
def test_a_person_is_asked_wherever_the_worker_died(
    point: str, unsure: SpecFile, models: FakeModels, people: People, clock: Clock, child: Child
) -> None:
    run = begin(unsure)
    dies(child("advance", str(run.uuid), faults=f"{point}=kill"))
    clock.advance(61)
    recover()
    run.refresh_from_db()
    if run.status == Status.INTERRUPTED:
        assert "judge" in run.error
        retry_run(run, actor=acting(people.operator), reason="asking the model twice does no harm")
    work()
    present = newest(run)
    assert present.status == Status.AWAITING
    request = ApprovalRequest.objects.get(run=present)
    assert (request.kind, request.step, request.phase) == ("guardrail", "judge", "after")
    assert models.count("after") == 0, "the step behind the guardrail has not started"
    judged = models.count("judge")
    decide(key_of(present), approved=True, actor=acting(people.approver))
    work()
    assert run_state(run)["status"] == "completed"
    assert (models.count("judge"), models.count("after")) == (judged, 1)
    assert Run.objects.filter(status=Status.COMPLETED).count() == 1


@pytest.mark.parametrize("point", ["run.lease_taken", "run.before_attempt"])
def test_a_worker_killed_after_the_approval_does_not_ask_twice(
    point: str, unsure: SpecFile, models: FakeModels, people: People, clock: Clock, child: Child
) -> None:
    run = begin(unsure)
    work()
    successor = decide(key_of(run), approved=True, actor=acting(people.approver)).run
    dies(child("advance", str(successor.uuid), faults=f"{point}=kill"))
    clock.advance(61)
    assert recover().requeued == 1
    work()
    assert run_state(run)["status"] == "completed"
    assert models.counts() == {"judge": 1, "after": 1}
    assert ApprovalRequest.objects.count() == 1
