"""The state of a run, folded from its events, and events as they go over the wire (engine semantics 2, design 5.3).

State: `status`, `trace`, and where they have a value `pendingApproval`, `finalOutput`, `error`.
"""

from __future__ import annotations

from typing import Any

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
from workflows.engine.values import NOTHING, Json

State = dict[str, Any]


def new_state() -> State:
    """A run that has not done anything yet."""
    return {"status": "running", "trace": []}


def apply(state: State, event: Event) -> State:
    """The state after the event; the one given stays as it was."""
    match event:
        case StepStarted():
            return _running(state)
        case StepCompleted():
            return _recorded(_running(state), _completed_record(event))
        case AwaitingApproval():
            return {**state, "status": "awaiting_approval", "pendingApproval": _pending(event)}
        case Completed():
            return {**_ended(state, "completed"), "finalOutput": event.output}
        case Rejected():
            return _stopped(state, "rejected", event.step, event.reason)
        case Failed():
            return _stopped(state, "failed", event.step, event.error)
        case Cancelled():
            return _stopped(state, "cancelled", None, event.error)
        case Expired():
            return _stopped(state, "expired", event.step, event.error)
        case Interrupted():
            return _stopped(state, "interrupted", event.step, event.error)


def accepted(state: State) -> State:
    """The state once a decision is taken: the run goes on and waits for nobody, though no event says so yet."""
    return _running(state)


def _running(state: State) -> State:
    return _ended(state, "running")


def _ended(state: State, status: str) -> State:
    rest = {name: value for name, value in state.items() if name != "pendingApproval"}
    return {**rest, "status": status}


def _stopped(state: State, status: str, step: str | None, error: str) -> State:
    ended = {**_ended(state, status), "error": error}
    return ended if step is None else _recorded(ended, {"step": step, "status": status, "error": error})


def _recorded(state: State, record: dict[str, Json]) -> State:
    return {**state, "trace": [*state["trace"], record]}


def _completed_record(event: StepCompleted) -> dict[str, Json]:
    return {"step": event.step, "status": "completed", **_result(event)}


def _result(event: StepCompleted) -> dict[str, Json]:
    """Output and confidence, where there are any; of a replayed step only the output is known."""
    result: dict[str, Json] = {}
    if event.output is not NOTHING:
        result["output"] = event.output
    if event.confidence is not None and not event.replayed:
        result["confidence"] = event.confidence
    return result


def _pending(event: AwaitingApproval) -> dict[str, Json]:
    pending: dict[str, Json] = {"step": event.step, "kind": event.kind, "reason": event.reason}
    if event.tool is not None:
        pending["toolName"] = event.tool
    if event.key is not None:
        pending["key"] = event.key
    return pending


# The wire ----------------------------------------------------------------------------------------------------


def event_json(event: Event) -> dict[str, Json]:
    """The event under its wire names; a field without a value is absent."""
    match event:
        case StepStarted():
            return {"type": "step_started", "step": event.step}
        case StepCompleted():
            return {"type": "step_completed", "step": event.step, **_result(event)}
        case AwaitingApproval():
            return {"type": "awaiting_approval", **_pending(event)}
        case Completed():
            return {"type": "completed", "output": event.output}
        case Rejected():
            return {"type": "rejected", "step": event.step, "reason": event.reason}
        case Failed():
            return _stop_json("failed", event.step, event.error)
        case Cancelled():
            return _stop_json("cancelled", None, event.error)
        case Expired():
            return _stop_json("expired", event.step, event.error)
        case Interrupted():
            return _stop_json("interrupted", event.step, event.error)


def _stop_json(kind: str, step: str | None, error: str) -> dict[str, Json]:
    return {"type": kind, "error": error} if step is None else {"type": kind, "step": step, "error": error}
