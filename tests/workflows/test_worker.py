"""Worker threads: they go on after an error, stop when told, keep house and show that they live."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import DatabaseError, connection
from pytest_django import Settings

from tests.conftest import Clock
from tests.fakes_tools import FakeTools
from tests.workbench import PAYING, PAYING_ANSWERS, begin, work, write_spec
from workflows import beats, housekeeping, messages
from workflows.draining import draining
from workflows.housekeeping import Chore
from workflows.models import Run, RunEvent, Status, WorkerBeat
from workflows.rota import Rota
from workflows.supervisor import Loop
from workflows.wakeup import Bell
from workflows.worker import WorkerPool

pytestmark = pytest.mark.django_db(transaction=True)


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a condition; fail when it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


@pytest.fixture
def loops() -> Iterator[Callable[..., Loop]]:
    """Starts loops, and stops them at the end."""
    started: list[Loop] = []

    def start(turn: Callable[[], float], bell: Bell | None = None) -> Loop:
        loop = Loop("under-test", turn, bell or Bell(), error_pause=0.02)
        started.append(loop)
        loop.start()
        return loop

    yield start
    for loop in started:
        loop.stop()
        loop.join(60)


@pytest.fixture
def pools() -> Iterator[Callable[[int], WorkerPool]]:
    """Starts pools, and stops what a failed test left working."""
    started: list[WorkerPool] = []

    def start(threads: int) -> WorkerPool:
        pool = WorkerPool(threads)
        started.append(pool)
        pool.start()
        return pool

    yield start
    for pool in started:
        pool.stop(20)


def test_a_database_error_ends_one_turn_and_not_the_loop(loops: Callable[..., Loop]) -> None:
    turns: list[str] = []

    def turn() -> float:
        turns.append("begun")
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1" if len(turns) > 1 else "SELECT gone FROM nowhere")
        turns.append("done")
        return 0.01

    loops(turn)
    until(lambda: turns.count("done") >= 2)
    assert turns[:3] == ["begun", "begun", "done"]


def test_a_dropped_connection_is_replaced(loops: Callable[..., Loop]) -> None:
    drop, answers, errors = threading.Event(), [], []

    def turn() -> float:
        if drop.is_set():
            drop.clear()
            cut_off()
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except DatabaseError as error:
            errors.append(error)
            raise
        answers.append(len(errors))
        return 0.01

    def cut_off() -> None:
        connection.ensure_connection()
        if connection.vendor == "postgresql":
            with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
        else:
            connection.connection.close()

    loops(turn)
    until(lambda: answers)
    drop.set()
    until(lambda: 1 in answers)
    assert len(errors) == 1


@pytest.mark.parametrize("error", [ValueError("unexpected"), SystemExit(3)])
def test_not_even_an_error_in_the_code_ends_the_loop(loops: Callable[..., Loop], error: BaseException) -> None:
    turns: list[int] = []

    def turn() -> float:
        turns.append(1)
        if len(turns) == 1:
            raise error
        return 0.01

    loops(turn)
    until(lambda: len(turns) >= 3)


def test_a_stopped_loop_finishes_its_turn_and_begins_no_other(loops: Callable[..., Loop]) -> None:
    begun, go_on, turns = threading.Event(), threading.Event(), []

    def turn() -> float:
        begun.set()
        go_on.wait(60)
        turns.append(1)
        return 0

    loop = loops(turn)
    assert begun.wait(60)
    loop.stop()
    assert loop.is_alive()
    go_on.set()
    loop.join(60)
    assert not loop.is_alive()
    assert turns == [1]


def test_an_idle_loop_looks_at_once_when_the_bell_rings(loops: Callable[..., Loop]) -> None:
    bell, turns = Bell(), []

    def turn() -> float:
        turns.append(1)
        if len(turns) == 1:
            bell.ring()  # after this look and before the wait: it must not be missed
        return 60

    loop = loops(turn, bell)
    until(lambda: len(turns) == 2)
    bell.ring()
    until(lambda: len(turns) == 3)
    loop.stop()
    loop.join(60)
    assert not loop.is_alive()


def test_a_chore_that_fails_leaves_the_others_to_be_done(
    monkeypatch: pytest.MonkeyPatch, pools: Callable[[int], WorkerPool]
) -> None:
    monkeypatch.setattr(housekeeping, "_chores", {})
    done: list[str] = []

    def fail() -> int:
        done.append("failed")
        raise ValueError("no broom")

    def good() -> int:
        done.append("good")
        return 1

    housekeeping.register("broken", 0.05, fail)
    housekeeping.register("good", 0.05, good)
    pool = pools(1)
    until(lambda: done.count("good") >= 3 and done.count("failed") >= 3)
    assert pool.stop(10) == ()


def test_a_chore_is_due_at_once_and_then_after_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [100.0]
    monkeypatch.setattr("workflows.rota.time.monotonic", lambda: moment[0])
    chore = Chore(name="sweep", every_seconds=30, run=lambda: 0)
    rota = Rota(lambda: (chore,))
    assert rota.due() == [chore]
    assert rota.due() == []
    assert rota.seconds_to_next(most=60) == 30
    moment[0] += 30
    assert rota.due() == [chore]


def test_registering_a_chore_again_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "_chores", {})
    housekeeping.register("sweep", 1, lambda: 0)
    housekeeping.register("sweep", 2, lambda: 0)
    assert [chore.every_seconds for chore in housekeeping.chores()] == [2]


def test_a_worker_shows_the_names_of_its_variables_and_never_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAY_TOKEN", "canary-7391")
    monkeypatch.setenv("EMPTY_TOKEN", "")
    beats.beat()
    beats.beat()
    row = WorkerBeat.objects.get()
    assert "PAY_TOKEN" in json.loads(row.environment)
    assert "canary-7391" not in row.environment
    assert beats.lacking(["PAY_TOKEN", "EMPTY_TOKEN", "OTHER"]) == ("EMPTY_TOKEN", "OTHER")


def test_a_worker_that_was_not_seen_for_ten_seconds_is_not_alive(clock: Clock) -> None:
    beats.beat()
    assert [one.owner for one in beats.alive()] == [WorkerBeat.objects.get().owner]
    clock.advance(11)
    assert beats.alive() == []
    assert beats.lacking(["PATH"]) == ("PATH",)
    assert beats.prune() == 0
    clock.advance(3600)
    assert beats.prune() == 1


def test_a_pool_drives_a_run_lives_meanwhile_and_signs_off(
    tmp_path: Path, settings: Settings, pools: Callable[[int], WorkerPool]
) -> None:
    settings.KAMPONG_POLL_SECONDS = 60.0  # only the bell can be as quick as this test
    pool = pools(2)
    until(beats.alive)
    with FakeTools(PAYING_ANSWERS) as tools:
        run = begin(write_spec(tmp_path, SLOW_LOOK, url=tools.url))
        until(lambda: Run.objects.get(pk=run.pk).status == Status.COMPLETED)
    assert pool.stop(20) == ()
    assert beats.alive() == []


def test_stopping_waits_for_the_step_that_runs_and_names_the_run_that_is_too_slow(
    tmp_path: Path, pools: Callable[[int], WorkerPool]
) -> None:
    answers = {"GET /invoice": {"json": {"amount": 1}, "hang": 2}}
    with FakeTools(answers) as tools:
        run = begin(write_spec(tmp_path, SLOW_LOOK, url=tools.url))
        pool = pools(1)
        until(lambda: tools.requests)
        assert pool.stop(0.2) == (str(run.uuid),)
        until(lambda: Run.objects.get(pk=run.pk).status == Status.COMPLETED)


def test_a_draining_process_hands_the_run_back_between_two_steps(
    tmp_path: Path, pools: Callable[[int], WorkerPool]
) -> None:
    with FakeTools(PAYING_ANSWERS | {"GET /invoice": {"json": {"amount": 1}, "hang": 0.5}}) as tools:
        run = begin(write_spec(tmp_path, PAYING, url=tools.url))
        pool = pools(1)
        until(lambda: tools.requests)
        draining.set()
        try:
            assert pool.stop(20) == ()
        finally:
            draining.clear()
        run.refresh_from_db()
        assert (run.status, run.step_index, run.takeovers, run.lease_until) == (Status.QUEUED, 1, 0, None)
        assert [attempt.outcome for attempt in run.attempts.all()] == ["ok"]
        assert messages.take() == ("default", str(run.uuid))
        assert work() == 1
        run.refresh_from_db()
        assert run.status == Status.AWAITING
        assert len(tools.requests) == 1
    kinds = list(RunEvent.objects.filter(run=run).order_by("number").values_list("type", flat=True))
    assert kinds == ["step_started", "step_completed", "step_started", "awaiting_approval"]


SLOW_LOOK = """\
version: "1.1"
agent:
  id: {agent_id}
  name: Looking clerk
  role: Clerk
  goal: Look.
  model: {{provider: ollama, name: test-model}}
  tools:
    - {{name: look, action: http_request, method: GET, url: "{url}/invoice", extract: amount}}
  workflow:
    - {{step: look, type: tool, tool: look}}
"""
