"""The tool of an expiry: called once, whoever sweeps and whoever dies (spec 1.2, `on_expire`; scenarios 19, 26)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connections

from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.policies import ANSWERS, a_pay, a_sign
from tests.conftest import Clock, People
from tests.counts import count
from tests.crash.conftest import Child, dies
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, to_pause, work
from workflows.engine.gates import EXPIRED
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.runs import give_up_run, newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = "expires_in: 10m, on_expire: execute_tool(tell)"


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


@pytest.fixture
def spec(tmp_path: Path, tools: FakeTools) -> SpecFile:
    return a_pay(tmp_path, POLICY, url=tools.url)


def paths(tools: FakeTools) -> list[str]:
    return [request.url.rpartition("/")[2] for request in tools.requests]


def late(spec: SpecFile, clock: Clock) -> tuple[Run, str]:
    run, key = to_pause(spec)
    clock.advance(601)
    return run, key


def test_a_sweeper_killed_inside_its_claim_has_claimed_nothing(
    spec: SpecFile, tools: FakeTools, clock: Clock, child: Child
) -> None:
    run, key = late(spec, clock)
    dies(child("sweep", faults="expire.claimed=kill"))
    assert StateRecord.objects.filter(key=f"approval:{key}").count() == 1
    assert (newest(run).status, AuditEntry.objects.count()) == (Status.AWAITING, 0)
    assert expire_due() == 1
    work()
    assert (run_state(run)["status"], paths(tools)) == ("expired", ["tell"])


def test_a_worker_killed_between_the_expiry_and_the_tool_leaves_it_to_another(
    spec: SpecFile, tools: FakeTools, clock: Clock, child: Child
) -> None:
    run, _ = late(spec, clock)
    assert expire_due() == 1
    dies(child("advance", str(newest(run).uuid), faults="run.before_attempt=kill"))
    assert paths(tools) == []
    clock.advance(61)
    assert recover().requeued == 1
    work()
    assert (run_state(run)["status"], paths(tools)) == ("expired", ["tell"])


def test_killed_behind_the_tool_it_is_told_as_interrupted_and_a_retry_repeats_the_tool_alone(
    spec: SpecFile, tools: FakeTools, people: People, clock: Clock, child: Child
) -> None:
    run, _ = late(spec, clock)
    assert expire_due() == 1
    dies(child("advance", str(newest(run).uuid), faults="run.called=kill"))
    clock.advance(61)
    recover()
    stopped = newest(run)
    assert (stopped.status, "interrupted at step sign.on_expire" in stopped.error) == (Status.INTERRUPTED, True)
    retry_run(stopped, actor=acting(people.operator), reason="telling twice does no harm")
    work()
    assert (run_state(run)["status"], run_state(run)["error"]) == ("expired", EXPIRED)
    assert paths(tools) == ["tell", "tell"]
    keys = {request.header("idempotency-key") for request in tools.requests}
    assert keys == {f"{run.uuid}-0-on_expire"}, "its receiver can tell the repeat"


def test_killed_with_the_outcome_kept_it_is_not_called_again(
    spec: SpecFile, tools: FakeTools, clock: Clock, child: Child
) -> None:
    run, _ = late(spec, clock)
    assert expire_due() == 1
    dies(child("advance", str(newest(run).uuid), faults="run.finished=kill"))
    assert (run_state(run)["status"], paths(tools), work()) == ("expired", ["tell"], 0)


def test_an_operator_may_give_it_up(
    spec: SpecFile, tools: FakeTools, people: People, clock: Clock, child: Child
) -> None:
    run, _ = late(spec, clock)
    expire_due()
    dies(child("advance", str(newest(run).uuid), faults="run.called=kill"))
    clock.advance(61)
    recover()
    give_up_run(newest(run), actor=acting(people.operator), reason="they know")
    assert (newest(run).status, work(), paths(tools)) == (Status.FAILED, 0, ["tell"])


def test_of_many_sweepers_at_once_each_request_has_one(spec: SpecFile, tools: FakeTools, clock: Clock) -> None:
    many = count(6, 50)
    for number in range(many):
        begin(spec, input=f"run {number}")
    work()
    clock.advance(601)

    def sweep(_: int) -> int:
        try:
            closed = 0
            while ApprovalRequest.objects.filter(status="open").exists():
                closed += expire_due()
            return closed
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(sweep, range(3))) == many
    work()
    assert paths(tools) == ["tell"] * many
    assert AuditEntry.objects.filter(act="expire").count() == many
    assert Run.objects.filter(status=Status.EXPIRED).count() == many


def test_a_companion_killed_in_its_call_is_interrupted_and_the_first_run_is_not(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock, child: Child
) -> None:
    spec = a_sign(tmp_path, "mode: record, on_decision: {approved: execute_tool(tell)}", url=tools.url)
    run = begin(spec)
    work()
    key = str(ApprovalRequest.objects.get(run=run).key)
    companion = decide(key, approved=True, actor=acting(people.approver)).run
    dies(child("advance", str(companion.uuid), faults="run.called=kill"))
    clock.advance(61)
    recover()
    assert (newest(companion).status, newest(run).status) == (Status.INTERRUPTED, Status.COMPLETED)
    retry_run(newest(companion), actor=acting(people.operator), reason="once more")
    work()
    assert (newest(companion).status, paths(tools)) == (Status.COMPLETED, ["last", "tell", "tell"])


@pytest.mark.parametrize("point", ["withdraw.before_claim", "withdraw.claimed"])
def test_somebody_who_withdraws_and_dies_before_the_commit_has_changed_nothing(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock, child: Child, point: str
) -> None:
    run, key = to_pause(a_pay(tmp_path, "recall: 10m", url=tools.url))
    decide(key, approved=True, actor=acting(people.approver))
    dies(child("withdraw", key, "approver", faults=f"{point}=kill"))
    assert (newest(run).status, ApprovalRequest.objects.get().status) == (Status.QUEUED, "decided")
    clock.advance(601)
    work()
    assert run_state(run)["status"] == "completed"


def test_and_behind_it_the_request_is_open(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock, child: Child
) -> None:
    run, key = to_pause(a_pay(tmp_path, "recall: 10m", url=tools.url))
    decide(key, approved=True, actor=acting(people.approver))
    dies(child("withdraw", key, "approver", faults="withdraw.committed=kill"))
    assert newest(run).status == Status.AWAITING
    clock.advance(601)
    assert (work(), paths(tools)) == (0, [])
