"""The state of a run, event by event, and the events on the wire (engine semantics 2, design 5.3)."""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest

from workflows.engine.events import (
    AwaitingApproval,
    Cancelled,
    Completed,
    Event,
    Expired,
    Failed,
    Interrupted,
    Rejected,
    StepCompleted,
    StepStarted,
)
from workflows.engine.state import State, accepted, apply, event_json, new_state
from workflows.engine.values import NOTHING, Json

STARTED = StepStarted(step="pay", index=0)
PAUSED = AwaitingApproval(step="pay", kind="tool", reason="Run send?", tool="send", key="k1")
DONE = StepCompleted(step="pay", index=0, output={"n": 1}, confidence=0.9)


def after(*events: Event) -> State:
    return functools.reduce(apply, events, new_state())


def test_a_new_run_is_running_and_has_done_nothing() -> None:
    assert after() == {"status": "running", "trace": []}
    assert after(STARTED) == {"status": "running", "trace": []}


def test_a_completed_step_is_recorded_with_its_confidence() -> None:
    assert after(STARTED, DONE)["trace"] == [
        {"step": "pay", "status": "completed", "output": {"n": 1}, "confidence": 0.9}
    ]


def test_a_step_without_a_value_has_no_output_and_null_is_a_value() -> None:
    first, second = after(
        StepCompleted(step="a", index=0, output=NOTHING), StepCompleted(step="b", index=1, output=None)
    )["trace"]
    assert first == {"step": "a", "status": "completed"}
    assert second == {"step": "b", "status": "completed", "output": None}


def test_a_confidence_of_nought_is_kept() -> None:
    assert after(StepCompleted(step="a", index=0, output={}, confidence=0))["trace"][0]["confidence"] == 0


def test_a_replayed_step_has_no_confidence() -> None:
    replayed = StepCompleted(step="a", index=0, output=1, confidence=0.5, replayed=True)
    assert after(replayed)["trace"] == [{"step": "a", "status": "completed", "output": 1}]
    assert event_json(replayed) == {"type": "step_completed", "step": "a", "output": 1}


def test_a_pause_says_what_it_waits_for() -> None:
    state = after(STARTED, PAUSED)
    assert state["status"] == "awaiting_approval"
    assert state["pendingApproval"] == {
        "step": "pay",
        "kind": "tool",
        "reason": "Run send?",
        "toolName": "send",
        "key": "k1",
    }


def test_a_pause_of_another_kind_names_no_tool_and_an_unstored_one_no_key() -> None:
    state = after(AwaitingApproval(step="ask", kind="approval", reason="Pay?"))
    assert state["pendingApproval"] == {"step": "ask", "kind": "approval", "reason": "Pay?"}


def test_a_taken_decision_clears_the_pause_before_anything_else_happens() -> None:
    assert accepted(after(STARTED, PAUSED)) == {"status": "running", "trace": []}


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (STARTED, "running"),
        (DONE, "running"),
        (Completed(output={}), "completed"),
        (Rejected(step="pay", reason="no"), "rejected"),
        (Failed(step="pay", error="broke"), "failed"),
        (Failed(error="broke"), "failed"),
        (Cancelled(error="called off"), "cancelled"),
        (Expired(step="pay", error="too late"), "expired"),
        (Interrupted(step="pay", error="lost"), "interrupted"),
    ],
)
def test_whatever_follows_a_pause_clears_it(event: Any, status: str) -> None:
    state = after(STARTED, PAUSED, event)
    assert state["status"] == status
    assert "pendingApproval" not in state


def test_the_end_has_the_final_output_and_no_error() -> None:
    assert after(DONE, Completed(output={"pay": {"n": 1}})) == {
        "status": "completed",
        "trace": [{"step": "pay", "status": "completed", "output": {"n": 1}, "confidence": 0.9}],
        "finalOutput": {"pay": {"n": 1}},
    }


def test_a_rejected_guardrail_leaves_two_records_of_its_step() -> None:
    pause = AwaitingApproval(step="pay", kind="guardrail", reason="low confidence")
    state = after(STARTED, DONE, pause, Rejected(step="pay", reason="not sure"))
    assert [record["status"] for record in state["trace"]] == ["completed", "rejected"]
    assert state["trace"][1] == {"step": "pay", "status": "rejected", "error": "not sure"}
    assert state["error"] == "not sure"
    assert state["status"] == "rejected"


@pytest.mark.parametrize(("event", "status"), [(Failed, "failed"), (Expired, "expired"), (Interrupted, "interrupted")])
def test_an_end_with_a_step_is_recorded_and_one_without_is_not(event: Any, status: str) -> None:
    assert after(event(step="pay", error="why")) == {
        "status": status,
        "trace": [{"step": "pay", "status": status, "error": "why"}],
        "error": "why",
    }
    assert after(event(error="why")) == {"status": status, "trace": [], "error": "why"}


def test_a_cancelled_run_says_why() -> None:
    assert after(STARTED, Cancelled(error="called off by ann")) == {
        "status": "cancelled",
        "trace": [],
        "error": "called off by ann",
    }


def test_applying_an_event_leaves_the_earlier_state_as_it_was() -> None:
    earlier = after(STARTED, DONE, PAUSED)
    kept = copy.deepcopy(earlier)
    for event in (STARTED, DONE, PAUSED, Completed(output={}), Failed(step="pay", error="x")):
        apply(earlier, event)
    accepted(earlier)
    assert earlier == kept


@pytest.mark.parametrize(
    ("event", "wire"),
    [
        (STARTED, {"type": "step_started", "step": "pay"}),
        (DONE, {"type": "step_completed", "step": "pay", "output": {"n": 1}, "confidence": 0.9}),
        (StepCompleted(step="a", index=0, output=NOTHING), {"type": "step_completed", "step": "a"}),
        (
            PAUSED,
            {
                "type": "awaiting_approval",
                "step": "pay",
                "kind": "tool",
                "reason": "Run send?",
                "toolName": "send",
                "key": "k1",
            },
        ),
        (Completed(output={"a": None}), {"type": "completed", "output": {"a": None}}),
        (Rejected(step="pay", reason="no"), {"type": "rejected", "step": "pay", "reason": "no"}),
        (Failed(step="pay", error="broke"), {"type": "failed", "step": "pay", "error": "broke"}),
        (Failed(error="broke"), {"type": "failed", "error": "broke"}),
        (Cancelled(error="off"), {"type": "cancelled", "error": "off"}),
        (Expired(step="pay", error="late"), {"type": "expired", "step": "pay", "error": "late"}),
        (Interrupted(error="lost"), {"type": "interrupted", "error": "lost"}),
    ],
)
def test_an_event_goes_over_the_wire_under_its_known_names(event: Event, wire: Json) -> None:
    assert event_json(event) == wire
