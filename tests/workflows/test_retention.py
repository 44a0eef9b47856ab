"""Finished chains go whole when their time is over; what was decided stays, and says what it was about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from approvals import audit
from approvals.models import ApprovalRequest, AuditEntry, Vote
from approvals.services import decide
from statestore.clock import now
from tests.approvals.policies import ANSWERS, a_sign, member
from tests.conftest import Clock, People
from tests.damaged import found
from tests.fakes_tools import FakeTools
from tests.surfaces.admin.scenes import FAILING
from tests.workbench import ASKING, HEAD, acting, begin, key_of, to_pause, work, write_spec
from workflows import housekeeping
from workflows.actors import system
from workflows.models import Attempt, Run, RunEvent, Status, TriggerState
from workflows.registry import SpecFile
from workflows.retention import keeps
from workflows.retention.pruning import prune, prune_decisions
from workflows.runs import cancel_run, newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 24 * 3600
#: Done at once, without anybody and without a call.
PLAIN = HEAD + "  workflow:\n    - {{step: seen, type: once, key: '{{{{ input }}}}', ttl: 1s, on_repeat: continue}}\n"


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


@pytest.fixture
def plain(tmp_path: Path) -> SpecFile:
    return write_spec(tmp_path, PLAIN.replace('"1.1"', '"1.2"'), agent_id="plain", name="plain.yaml")


@pytest.fixture
def asking(tmp_path: Path) -> SpecFile:
    return write_spec(tmp_path, ASKING)


def ended(spec: SpecFile, times: int = 1) -> list[Run]:
    """Runs that completed, one after the other."""
    runs = [begin(spec, input=f"{number}") for number in range(times)]
    work()
    for run in runs:
        run.refresh_from_db()
        assert run.status == Status.COMPLETED, run.error
    return runs


def decided(spec: SpecFile, people: People, *answers: bool) -> Run:
    """The first run of a chain that was decided so, and ended."""
    run, _ = to_pause(spec)
    for answer in answers:
        decide(key_of(newest(run)), approved=answer, reason="said so", actor=acting(people.approver))
        work()
    return run


def rows(*models: Any) -> int:
    """How many rows these tables have in all."""
    return sum(model.objects.count() for model in models)


def left() -> set[str]:
    """The inputs of the runs that are there."""
    return set(Run.objects.values_list("input", flat=True))


def test_nothing_goes_unless_somebody_says_so(plain: SpecFile, asking: SpecFile, people: People, clock: Clock) -> None:
    ended(plain)
    decided(asking, people, False)
    clock.advance(90_000 * DAY)
    assert (prune(), prune_decisions()) == (0, 0)
    assert Run.objects.count() == 3
    assert RunEvent.objects.exists()


def test_after_its_time_a_run_goes_with_all_that_hangs_on_it(tmp_path: Path, clock: Clock, settings: Settings) -> None:
    settings.KAMPONG_KEEP_FAILED = "90d"
    with FakeTools({"GET /broken": {"status": 500}}) as tools:
        run = begin(write_spec(tmp_path, FAILING, url=tools.url))
        work()
    assert RunEvent.objects.exists()
    assert Attempt.objects.count() == 1
    trigger = TriggerState.objects.create(
        agent_id="clerk", kind="schedule", definition="", due_at=now(), created_at=now(), last_run=run
    )
    clock.advance(90 * DAY - 60)
    assert prune() == 0
    clock.advance(60)
    assert (prune(), prune()) == (1, 0)
    assert rows(Run, RunEvent, Attempt) == 0
    trigger.refresh_from_db()
    assert trigger.last_run is None


def test_the_status_of_the_newest_run_decides(
    plain: SpecFile, asking: SpecFile, people: People, clock: Clock, settings: Settings
) -> None:
    settings.KAMPONG_KEEP_REJECTED = "30d"
    ended(plain)
    decided(asking, people, True, True)
    rejected = decided(asking, people, True, False)
    cancelled, _ = to_pause(asking)
    cancel_run(cancelled, actor=system("test"))
    clock.advance(31 * DAY)
    assert prune() == 1
    pruned = Run.objects.filter(pruned_at__isnull=False)
    assert {run.root_id_or_own for run in pruned} == {rejected.pk}
    assert pruned.count() == 3, "the whole chain"
    settings.KAMPONG_KEEP_CANCELLED = settings.KAMPONG_KEEP_COMPLETED = "30d"
    assert (prune(), Run.objects.filter(pruned_at__isnull=True).count()) == (3, 0)


def test_of_each_agent_the_newest_stay(tmp_path: Path, plain: SpecFile, clock: Clock, settings: Settings) -> None:
    settings.KAMPONG_KEEP_COMPLETED = "2"
    other = write_spec(tmp_path, PLAIN.replace('"1.1"', '"1.2"'), agent_id="other", name="other.yaml")
    ended(plain, 5)
    assert prune() == 0, "whoever waits for one that has just ended still reads it"
    ended(other, 2)
    clock.advance(130)
    assert (prune(limit=2), prune(limit=2), prune(limit=2)) == (2, 1, 0)
    assert list(Run.objects.filter(agent_id="plain").order_by("pk").values_list("input", flat=True)) == ["3", "4"]
    assert Run.objects.filter(agent_id="other").count() == 2


def test_of_both_what_is_over_either_goes(plain: SpecFile, clock: Clock, settings: Settings) -> None:
    settings.KAMPONG_KEEP_COMPLETED = "10d 3"
    ended(plain, 4)
    clock.advance(3600)
    assert (prune(), left()) == (1, {"1", "2", "3"})
    clock.advance(10 * DAY)
    ended(plain, 1)
    assert (prune(), left()) == (3, {"0"})


def test_what_works_waits_or_is_queued_stays_however_old(
    plain: SpecFile, asking: SpecFile, people: People, clock: Clock, settings: Settings
) -> None:
    for name in (*keeps.SETTINGS.values(), keeps.DECISIONS):
        setattr(settings, name, "1s")
    to_pause(asking)
    decided(asking, people, True)
    begin(plain)
    running = begin(plain)
    Run.objects.filter(pk=running.pk).update(status=Status.RUNNING)
    before = list(Run.objects.order_by("pk").values())
    clock.advance(400 * DAY)
    assert (prune(), prune_decisions()) == (0, 0)
    assert list(Run.objects.order_by("pk").values()) == before


def test_of_a_chain_with_a_decision_the_rows_stay_and_say_that_it_was_pruned(
    asking: SpecFile, people: People, clock: Clock, settings: Settings
) -> None:
    settings.KAMPONG_KEEP_COMPLETED = "90d"
    run = decided(asking, people, True, True)
    kept = ("uuid", "status", "created_at", "ended_at", "root_id", "resumed_from_id", "resumed_as_id", "decision")
    before, asked = (
        list(Run.objects.order_by("pk").values(*kept)),
        list(ApprovalRequest.objects.order_by("pk").values()),
    )
    entries = list(AuditEntry.objects.order_by("pk").values())
    clock.advance(91 * DAY)
    assert (prune(), prune()) == (1, 0)
    assert list(Run.objects.order_by("pk").values(*kept)) == before
    content = Run.objects.values_list("input", "trigger", "overrides", "outputs", "held_keys")
    assert set(content) == {("", "", "", "", "")}
    assert not Run.objects.filter(pruned_at=None).exists()
    assert rows(RunEvent, Attempt) == 0
    assert list(ApprovalRequest.objects.order_by("pk").values()) == asked
    assert newest(run).status == Status.COMPLETED
    clock.advance(90_000 * DAY)
    assert (prune_decisions(), list(AuditEntry.objects.order_by("pk").values())) == (0, entries)


def test_decisions_go_when_somebody_says_so_and_the_audit_never(
    tmp_path: Path, asking: SpecFile, tools: FakeTools, people: People, clock: Clock, settings: Settings
) -> None:
    settings.KAMPONG_KEEP_COMPLETED, settings.KAMPONG_KEEP_DECISIONS = "90d", "400d"
    decided(asking, people, True, True)
    spec = a_sign(tmp_path, "approvers: {quorum: 2}, remind_every: 1h", url=tools.url)
    _, key = to_pause(spec)
    for name in ("asha", "bo"):
        decide(key, approved=True, actor=acting(member(name)))
    work()
    assert Vote.objects.exists()
    entries = list(AuditEntry.objects.order_by("pk").values())
    clock.advance(91 * DAY)
    assert (prune(), prune_decisions()) == (2, 0)
    clock.advance(310 * DAY)
    assert (prune_decisions(limit=1), prune_decisions(limit=1), prune_decisions(limit=1)) == (1, 1, 0)
    assert rows(Run, ApprovalRequest, Vote) == 0
    assert list(AuditEntry.objects.order_by("pk").values()) == entries


def test_what_is_over_by_both_goes_at_once(asking: SpecFile, people: People, clock: Clock, settings: Settings) -> None:
    settings.KAMPONG_KEEP_REJECTED, settings.KAMPONG_KEEP_DECISIONS = "2d", "1d"
    decided(asking, people, False)
    clock.advance(1.5 * DAY)
    assert (prune(), prune_decisions()) == (0, 0), "a decision goes after its run, not before"
    clock.advance(DAY)
    assert (prune(), Run.objects.count(), ApprovalRequest.objects.count()) == (1, 0, 0)


def test_a_request_beside_the_run_is_waited_for_and_what_it_called_goes_with_it(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock, settings: Settings
) -> None:
    settings.KAMPONG_KEEP_COMPLETED = "10d"
    policy = "mode: record, expires_in: 60d, on_decision: {approved: execute_tool(tell)}"
    run = begin(a_sign(tmp_path, policy, url=tools.url))
    work()
    assert newest(run).status == Status.COMPLETED
    clock.advance(20 * DAY)
    assert prune() == 0, "its request is still open"
    decide(key_of(run), approved=True, actor=acting(people.approver))
    assert prune() == 0, "and now what it calls is queued"
    work()
    assert prune() == 0, "it has just ended"
    companion = Run.objects.get(beside=run)
    assert companion.status == Status.COMPLETED
    clock.advance(10 * DAY + 1)
    assert prune() == 1
    assert set(Run.objects.filter(pruned_at__isnull=False)) == {run, companion}
    settings.KAMPONG_KEEP_DECISIONS = "1d"
    clock.advance(DAY)
    assert (prune_decisions(), Run.objects.count()) == (1, 0)


def test_those_that_must_wait_keep_no_others_from_their_end(
    tmp_path: Path, tools: FakeTools, clock: Clock, settings: Settings
) -> None:
    settings.KAMPONG_KEEP_COMPLETED = "10d"
    spec = a_sign(tmp_path, "mode: record, expires_in: 60d", url=tools.url)
    held = [begin(spec) for _ in range(3)]
    work()
    gone = [begin(spec) for _ in range(3)]
    work()
    ApprovalRequest.objects.filter(run__in=gone).update(status="cancelled", closed_at=now())
    clock.advance(11 * DAY)
    assert (prune(limit=2), prune(limit=2)) == (2, 1)
    with CaptureQueriesContext(connection) as asked:
        assert prune(limit=2) == 0
    assert {query["sql"].split()[0] for query in asked.captured_queries} == {"SELECT"}, "nobody is kept from writing"
    assert set(Run.objects.filter(pruned_at__isnull=True)) == set(held)


def test_a_retried_chain_goes_as_one(tmp_path: Path, people: People, clock: Clock, settings: Settings) -> None:
    settings.KAMPONG_KEEP_FAILED = "10d"
    with FakeTools({"GET /broken": {"status": 500}}) as tools:
        spec = write_spec(tmp_path, FAILING, url=tools.url)
        run = begin(spec)
        work()
        clock.advance(9 * DAY)
        run.refresh_from_db()
        retry_run(run, actor=acting(people.operator), reason="again")
        assert prune() == 0
        work()
    clock.advance(2 * DAY)
    assert prune() == 0, "its newest run is two days old"
    clock.advance(9 * DAY)
    assert (prune(), Run.objects.count()) == (1, 0)


def test_what_is_left_agrees_with_itself(
    tmp_path: Path, asking: SpecFile, tools: FakeTools, people: People, clock: Clock, settings: Settings
) -> None:
    for name in keeps.SETTINGS.values():
        setattr(settings, name, "1d")
    decided(asking, people, True, False)
    run = begin(a_sign(tmp_path, "mode: record", url=tools.url))
    work()
    decide(key_of(run), approved=True, actor=acting(people.approver))
    to_pause(asking)
    audit.seal()
    clock.advance(1.5 * DAY)
    assert (prune(), found()) == (2, [])
    settings.KAMPONG_KEEP_DECISIONS = "1d"
    assert (prune_decisions(), found()) == (2, [])
    assert audit.verify().first_bad is None


def test_every_process_that_keeps_house_does_it() -> None:
    assert {"finished runs", "old decisions"} <= {chore.name for chore in housekeeping.chores()}
