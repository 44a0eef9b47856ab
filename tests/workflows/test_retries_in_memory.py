"""Retries and pacing of runs in memory, against a real server, by a clock of its own (engine semantics 14.6)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from tests.fakes_clock import FakeClock
from tests.fakes_tools import FakeTools
from workflows.advance import world_for
from workflows.engine.situation import Situation
from workflows.memory_run import State, run_in_memory
from workflows.pacing import MemoryPacer
from workflows.spec.load import load

SPEC = """\
version: "1.1"
agent:
  id: clerk
  name: Patient clerk
  role: Clerk
  goal: Ask again.
  model: {{provider: ollama, name: test-model}}
  tools:
    - name: ask
      action: http_request
      method: {method}
      url: "{url}/x"
{more}
  workflow:
    - {{step: one, type: tool, tool: ask}}
"""
RETRY = "      retry: {max: 2, backoff: exponential, base_ms: 100, max_delay_ms: 5000}\n"
GOOD = {"json": {"ok": True}}
BAD = {"status": 503, "text": "no"}


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools() as server:
        yield server


def run(tools: FakeTools, clock: FakeClock, *, method: str = "GET", more: str = RETRY, waits: bool = True) -> State:
    spec = load(SPEC.format(method=method, url=tools.url, more=more.rstrip("\n"))).spec
    assert spec is not None
    world = replace(world_for(spec), clock=clock, pacer=MemoryPacer(clock.moment), waits=waits)
    return run_in_memory(spec, Situation(input="go"), world, ask=lambda pause: None, listener=lambda event, state: None)


def answers(tools: FakeTools, method: str, *given: Any) -> None:
    tools.script = {f"{method} /x": list(given)}


def test_the_same_request_is_made_until_it_is_answered(tools: FakeTools) -> None:
    answers(tools, "PUT", BAD, {"error": "gone"}, GOOD)
    clock = FakeClock()
    state = run(tools, clock, method="PUT", more=RETRY + '      body: {json: {to: "{{ input }}"}}')
    assert state["status"] == "completed"
    assert state["finalOutput"] == {"one": {"ok": True}}
    assert clock.sleeps_ms == [100, 200]
    assert [request.json() for request in tools.requests] == [{"to": "go"}] * 3


def test_the_failure_of_the_last_attempt_is_the_step_s_with_the_number(tools: FakeTools) -> None:
    answers(tools, "GET", BAD, BAD, {"status": 500, "text": "worse"})
    clock = FakeClock()
    state = run(tools, clock)
    assert state["status"] == "failed"
    assert "status 500" in state["error"]
    assert "status 503" not in state["error"]
    assert state["error"].endswith("Gave up after 3 attempts.")
    assert len(tools.requests) == 3
    assert clock.sleeps_ms == [100, 200]


@pytest.mark.parametrize(("method", "requests"), [("GET", 2), ("POST", 1), ("PATCH", 1), ("DELETE", 2)])
def test_a_rule_that_is_retryable_repeats_what_may_be_repeated(tools: FakeTools, method: str, requests: int) -> None:
    answers(tools, method, {"json": {"busy": True}}, GOOD)
    rule = "      failure_when: [{path: busy, exists: true, retryable: true}]\n"
    state = run(tools, FakeClock(), method=method, more=RETRY + rule)
    assert len(tools.requests) == requests
    assert state["status"] == ("completed" if requests == 2 else "failed")


@pytest.mark.parametrize(("status", "requests"), [(500, 1), (408, 1), (429, 2)])
def test_a_post_is_repeated_only_when_it_was_turned_away(tools: FakeTools, status: int, requests: int) -> None:
    answers(tools, "POST", {"status": status, "text": "no"}, GOOD)
    state = run(tools, FakeClock(), method="POST")
    assert len(tools.requests) == requests
    assert "attempt" not in state.get("error", "")


def test_the_server_s_date_is_read_by_the_run_s_clock(tools: FakeTools) -> None:
    clock = FakeClock()
    date = format_datetime(clock.now() + timedelta(seconds=3), usegmt=True)
    answers(tools, "GET", {"status": 429, "text": "no", "headers": {"Retry-After": date}}, GOOD)
    assert run(tools, clock)["status"] == "completed"
    assert clock.sleeps_ms == [3000]


def test_a_server_that_asks_for_too_long_ends_the_step_at_once(tools: FakeTools) -> None:
    answers(tools, "GET", {"status": 503, "text": "no", "headers": {"Retry-After": "60"}})
    clock = FakeClock()
    state = run(tools, clock)
    assert clock.sleeps_ms == []
    assert "60 seconds" in state["error"]
    assert "5 seconds" in state["error"]


def test_a_header_on_an_answer_that_a_rule_refused_is_not_the_failure_s(tools: FakeTools) -> None:
    answers(tools, "GET", {"json": {"busy": True}, "headers": {"Retry-After": "60"}}, GOOD)
    rule = "      failure_when: [{path: busy, exists: true, retryable: true}]\n"
    clock = FakeClock()
    assert run(tools, clock, more=RETRY + rule)["status"] == "completed"
    assert clock.sleeps_ms == [100]


def test_nothing_waits_in_a_replay_and_the_attempts_are_made_all_the_same(tools: FakeTools) -> None:
    answers(tools, "GET", BAD, BAD, GOOD)
    clock = FakeClock()
    assert run(tools, clock, more=RETRY + "      pace: {rps: 0.001}", waits=False)["status"] == "completed"
    assert clock.sleeps_ms == []
    assert len(tools.requests) == 3


def test_each_attempt_takes_a_slot(tools: FakeTools) -> None:
    answers(tools, "GET", BAD, BAD, GOOD)
    clock = FakeClock()
    assert run(tools, clock, more=RETRY + "      pace: {rps: 4}")["status"] == "completed"
    assert clock.sleeps_ms == [100, 150, 200, 50]


def test_threads_without_a_database_share_the_slots_of_their_process(tools: FakeTools) -> None:
    tools.script = {"GET /x": GOOD}
    spec = load(SPEC.format(method="GET", url=tools.url, more="      pace: {rps: 10}")).spec
    assert spec is not None

    def one() -> None:
        run_in_memory(
            spec, Situation(input="go"), world_for(spec), ask=lambda pause: None, listener=lambda event, state: None
        )

    threads = [threading.Thread(target=one) for _ in range(6)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(tools.requests) == 6
    assert time.monotonic() - began >= 0.5, "the first at once, five more a tenth of a second apart"
