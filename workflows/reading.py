"""A run's state and events for a reader, built from its numbered events (engine semantics 2.2, design 5.2).

A chain reads as its newest run; nobody on the wire sees `queued` or `resumed`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from statestore.clock import now
from workflows import codec
from workflows.desk import desk
from workflows.draining import draining
from workflows.engine import jsontext, state
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
from workflows.engine.values import NOTHING, Json, Outputs
from workflows.models import FINAL, Run, RunEvent, Status
from workflows.pooling import give_connection_back
from workflows.runs import newest
from workflows.times import rfc3339
from workflows.waiting import recalled_until

logger = logging.getLogger("kampong.runs")

State = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One event of a run with the state after it. `number` counts within the run, from 1."""

    number: int
    event: Json
    state: State
    at: Any


def snapshot(run: Run) -> tuple[Run, Outputs]:
    """The run's row as it is now, with the outputs that belong to it.

    Outputs are in the record while the run waits, and with its successor once it was resumed (but for those that the
    successor makes anew). Row and outputs are written together, so the row's `last_event` bounds the events that these
    outputs can tell.
    """
    first = present = Run.objects.get(pk=run.pk)
    kept: list[Outputs] = []
    while True:
        if present.status == Status.RESUMED and present.resumed_as_id is not None:
            # What a retry makes anew is not what this run made: that stayed here.
            kept.append(codec.load_outputs(present.outputs))
            present = Run.objects.get(pk=present.resumed_as_id)
            continue
        held = _held_by(present)
        if held is not None:
            break
        # Decided between the two reads.
        present = Run.objects.get(pk=present.pk)
        first = present if first.pk == present.pk else first
    for own in reversed(kept):
        held = held | own
    return first, held


def _held_by(run: Run) -> Outputs | None:
    """The outputs that this run's row or record holds; None when it no longer waits as the row said."""
    if run.status != Status.AWAITING:
        return codec.load_outputs(run.outputs)
    stored = desk().outputs(run)
    if stored is not None:
        return codec.outputs_from(stored)
    if Run.objects.filter(pk=run.pk, status=Status.AWAITING).exists():
        logger.error("run %s waits and has no record; an operator must look", run.uuid)
        return {}
    return None


def event_of(row: RunEvent, outputs: Outputs) -> Event:
    """The stored row as the event it was, with the output read from the run."""
    facts = jsontext.loads(row.payload)
    match row.type:
        case "step_started":
            return StepStarted(step=facts["step"], index=facts.get("index", 0))
        case "step_completed":
            return StepCompleted(
                step=facts["step"],
                index=facts.get("index", 0),
                output=outputs.get(facts["step"], NOTHING),
                confidence=facts.get("confidence"),
            )
        case "awaiting_approval":
            return AwaitingApproval(
                step=facts["step"],
                kind=facts["kind"],
                reason=facts["reason"],
                tool=facts.get("toolName"),
                key=facts.get("key"),
            )
        case "completed":
            inner = facts.get("inner", ())
            kept = {step: value for step, value in outputs.items() if value is not NOTHING and step not in inner}
            return Completed(output=kept)
        case "rejected":
            return Rejected(step=facts["step"], reason=facts["reason"])
        case "failed":
            return Failed(error=facts["error"], step=facts.get("step"))
        case "cancelled":
            return Cancelled(error=facts["error"])
        case "expired":
            return Expired(error=facts["error"], step=facts.get("step"))
        case "interrupted":
            return Interrupted(error=facts["error"], step=facts.get("step"))
    raise ValueError(f"event {row.pk} has the unknown type {row.type!r}")


def frames(run: Run, after: int = 0) -> Iterator[Frame]:
    """This run's own events numbered above `after`, each with the state after it."""
    present, outputs = snapshot(run)
    current = state.new_state()
    for row in RunEvent.objects.filter(run=run, number__lte=present.last_event).order_by("number"):
        event = event_of(row, outputs)
        current = state.apply(current, event)
        if row.number > after:
            yield Frame(number=row.number, event=state.event_json(event), state=current, at=row.at)


def own_state(run: Run) -> State:
    """The state of this record alone.

    One whose approval was withdrawn says nothing in its events, so that whoever watches it goes on with the run that
    waits in its place. Of one that was pruned stays how it ended, or its chain.
    """
    current = state.new_state()
    if run.pruned_at is not None:
        ended = newest(run) if run.status == Status.RESUMED else run
        error = {"error": ended.error} if ended.error else {}
        return current | {"status": str(ended.status)} | error | {"prunedAt": rfc3339(run.pruned_at)}
    if run.status == Status.CANCELLED and run.resumed_as_id is not None:
        return state.apply(current, Cancelled(error=run.error))
    for frame in frames(run):
        current = frame.state
    return current


def run_state(run: Run) -> State:
    """The state of the chain: its newest run's."""
    return own_state(newest(run))


def run_json(run: Run, *, own: bool = False) -> dict[str, Any]:
    """`{id, state, resumedFrom?, resumedAs?, recallUntil?, beside?, companions?}`.

    The id is the one asked for; the state is the chain's unless `own`. `recallUntil`: the run waits as long as its
    approval can be withdrawn. `beside` names the run that asked for the decision on which this one was started, and
    `companions` are those that were started so beside this one.
    """
    shown = run if own else newest(run)
    answer: dict[str, Any] = {"id": str(run.uuid), "agent": run.agent_id, "state": own_state(shown)}
    if run.resumed_from_id is not None:
        answer["resumedFrom"] = str(Run.objects.values_list("uuid", flat=True).get(pk=run.resumed_from_id))
    if shown.pk != run.pk:
        answer["resumedAs"] = str(shown.uuid)
    elif run.resumed_as_id is not None:
        answer["resumedAs"] = str(Run.objects.values_list("uuid", flat=True).get(pk=run.resumed_as_id))
    recall = recalled_until(shown)
    if recall is not None:
        answer["recallUntil"] = rfc3339(recall)
    if run.beside is not None:
        answer["beside"] = str(run.beside.uuid)
    companions = companions_of(run)
    if companions:
        answer["companions"] = [str(one.uuid) for one in companions]
    return answer


def companions_of(run: Run) -> list[Run]:
    """The newest run of each that was started beside this one's chain, the first one first (`mode: record`)."""
    return list(Run.objects.filter(beside=run.root_id_or_own, resumed_as__isnull=True).order_by("id"))


def wait_for(run: Run, seconds: float) -> Run:
    """The chain's newest run once it waits or has ended, or after `seconds`; at once when this process drains.

    At once also when it waits for the end of a recall that comes later.

    Between two looks nothing is held: no transaction, and no connection that others could use.
    """
    deadline, pause = time.monotonic() + seconds, 0.01
    while True:
        present = newest(run)
        left = deadline - time.monotonic()
        if present.status in FINAL or present.status == Status.AWAITING or left <= 0 or draining.is_set():
            return present
        recall = recalled_until(present)
        if recall is not None and (recall - now()).total_seconds() > left:
            return present
        give_connection_back()
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.2)
