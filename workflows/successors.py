"""The fresh run that goes on where another stopped: after a decision, or after an operator's retry (design 3.3).

Both are called inside the transaction that decided; the filtered update of the old run is their claim on it.
"""

from __future__ import annotations

from statestore.clock import DbNow, now
from workflows import codec
from workflows.engine.effects import Decision
from workflows.engine.events import Event, Rejected, StepCompleted
from workflows.engine.values import Outputs
from workflows.errors import NotPossible
from workflows.journal import event_row
from workflows.models import Run, RunEvent, Status
from workflows.tasks import enqueue


def leave(run: Run, expected: Status, *, left: Outputs | None = None) -> None:
    """`expected -> resumed` by one filtered update; NotPossible when the run is no longer there.

    Outputs go with the successor. `left` are those that it does not take, because it makes them anew.
    """
    moved = Run.objects.filter(pk=run.pk, status=expected).update(
        status=Status.RESUMED,
        outputs=codec.dump_outputs(left or {}),
        ended_at=DbNow(),
        lease_owner="",
        lease_until=None,
    )
    if moved != 1:
        present = Run.objects.values_list("status", flat=True).get(pk=run.pk)
        raise NotPossible(f"run {run.uuid} is {present} now, not {expected}", status=str(present))


def go_on(run: Run, *, outputs: Outputs, decision: Decision | None) -> Run:
    """A queued successor at the same position. A worker replays its outputs and enters the step."""
    successor = _create(run, Status.QUEUED, outputs=outputs, decision=decision)
    enqueue(successor)
    return successor


def end_rejected(run: Run, *, outputs: Outputs, decision: Decision, reason: str) -> Run:
    """A successor that is final already: a rejection needs no worker and is allowed under any spec."""
    successor = _create(run, Status.REJECTED, outputs=outputs, decision=decision, error=reason)
    events: list[Event] = [
        StepCompleted(step=step, index=number, output=value, replayed=True)
        for number, (step, value) in enumerate(outputs.items())
    ]
    events.append(Rejected(step=run.step, reason=reason))
    RunEvent.objects.bulk_create(event_row(successor, number, event) for number, event in enumerate(events, start=1))
    Run.objects.filter(pk=successor.pk).update(last_event=len(events), ended_at=DbNow())
    return successor


def _create(run: Run, status: Status, *, outputs: Outputs, decision: Decision | None, error: str = "") -> Run:
    successor = Run(
        workspace=run.workspace,
        agent_id=run.agent_id,
        spec_hash=run.spec_hash,
        source=run.source,
        status=status,
        input=run.input,
        trigger=run.trigger,
        overrides=run.overrides,
        outputs=codec.dump_outputs(outputs),
        error=error,
        step_index=run.step_index,
        step=run.step,
        phase=run.phase,
        rebinds=run.rebinds,
        decision=codec.dump_decision(decision),
        root_id=run.root_id_or_own,
        resumed_from=run,
        started_by=run.started_by,
        started_by_user_id=run.started_by_user_id,
        surface=run.surface,
        created_at=now(),
        queued_at=DbNow(),
    )
    successor.save(force_insert=True)
    Run.objects.filter(pk=run.pk).update(resumed_as=successor)
    return successor
