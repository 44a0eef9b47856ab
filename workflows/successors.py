"""The fresh run that goes on where another stopped: after a decision, or after an operator's retry (design 3.3).

Both are called inside the transaction that decided; the filtered update of the old run is their claim on it.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from statestore.clock import DbNow, now
from workflows import codec
from workflows.crossing import crossing
from workflows.engine.effects import Decision
from workflows.engine.events import AwaitingApproval, Event, Rejected, StepCompleted
from workflows.engine.values import Outputs
from workflows.errors import NotPossible
from workflows.journal import event_row
from workflows.metrics.runs import ended
from workflows.models import Run, RunEvent, Status
from workflows.tasks import enqueue


def leave(run: Run, expected: Status, *, left: Outputs | None = None) -> None:
    """`expected -> resumed` by one filtered update; NotPossible when the run is no longer there.

    Outputs go with the successor. `left` are those that it does not take, because it makes them anew.
    """
    moved = Run.objects.filter(pk=run.pk, status=expected, pruned_at__isnull=True).update(
        status=Status.RESUMED,
        outputs=codec.dump_outputs(left or {}),
        ended_at=DbNow(),
        lease_owner="",
        lease_until=None,
    )
    if moved != 1:
        present = Run.objects.filter(pk=run.pk, pruned_at__isnull=True).values_list("status", flat=True).first()
        now_is = f"{present} now, not {expected}" if present else "not kept any more"
        raise NotPossible(f"run {run.uuid} is {now_is}", status=str(present or expected))


def go_on(run: Run, *, outputs: Outputs, decision: Decision | None, not_before: DbNow | None = None) -> Run:
    """A queued successor at the same position. A worker replays its outputs and enters the step, at that time at last.

    What called a companion run into being is called by its successor as well.
    """
    waits = {"not_before": not_before, "purpose": run.purpose, "beside_id": run.beside_id}
    successor = _create(run, Status.QUEUED, outputs=outputs, decision=decision, **waits)
    enqueue(successor)
    return successor


def call_beside(run: Run, *, step: str, spec_hash: str, outputs: Outputs, decision: Decision) -> Run:
    """A queued run of its own that only calls what a recorded request calls on its decision (spec 1.2).

    It stands at the step at which `run` asked, and names the first run of that chain.
    """
    companion = _copy(run, Status.QUEUED, outputs=outputs, decision=decision)
    companion.step_index, companion.step, companion.phase = decision.step_index, step, decision.phase
    companion.spec_hash = spec_hash
    companion.purpose, companion.beside_id = "on_decision", run.root_id_or_own
    companion.save(force_insert=True)
    enqueue(companion)
    return companion


def wait_again(run: Run, withdrawn: Run, *, outputs: Outputs, event: AwaitingApproval) -> Run:
    """A successor of `run` that waits where it waited, in place of one whose approval was withdrawn.

    The withdrawn one reads as this one from here on. The outputs are for its events; they live in the record.
    """
    successor = _create(run, Status.AWAITING, outputs={}, decision=None)
    _tell(successor, outputs, event)
    Run.objects.filter(pk=withdrawn.pk).update(resumed_as=successor)
    return successor


def end_rejected(run: Run, *, outputs: Outputs, decision: Decision, reason: str) -> Run:
    """A successor that is final already: a rejection needs no worker and is allowed under any spec."""
    successor = _create(run, Status.REJECTED, outputs=outputs, decision=decision, error=reason)
    _tell(successor, outputs, Rejected(step=run.step, reason=reason), ended_at=DbNow())
    ended(successor, Status.REJECTED)
    return successor


def _tell(successor: Run, outputs: Outputs, last: Event, **columns: Any) -> None:
    """Write the events of a successor that no worker drives: what the runs before it did, and what it came to.

    `columns` are written with them.
    """
    events: list[Event] = [
        StepCompleted(step=step, index=number, output=value, replayed=True)
        for number, (step, value) in enumerate(outputs.items())
    ]
    events.append(last)
    RunEvent.objects.bulk_create(event_row(successor, number, event) for number, event in enumerate(events, start=1))
    transaction.on_commit(crossing.ring, robust=True)
    Run.objects.filter(pk=successor.pk).update(last_event=len(events), **columns)


def _create(run: Run, status: Status, *, outputs: Outputs, decision: Decision | None, **more: Any) -> Run:
    successor = _copy(run, status, outputs=outputs, decision=decision, **more)
    successor.root_id, successor.resumed_from = run.root_id_or_own, run
    successor.save(force_insert=True)
    Run.objects.filter(pk=run.pk).update(resumed_as=successor)
    return successor


def _copy(run: Run, status: Status, *, outputs: Outputs, decision: Decision | None, **more: Any) -> Run:
    """An unsaved run of the same spec with the same start, at the same position."""
    return Run(
        workspace=run.workspace,
        agent_id=run.agent_id,
        spec_hash=run.spec_hash,
        source=run.source,
        status=status,
        input=run.input,
        trigger=run.trigger,
        overrides=run.overrides,
        outputs=codec.dump_outputs(outputs),
        step_index=run.step_index,
        step=run.step,
        phase=run.phase,
        rebinds=run.rebinds,
        decision=codec.dump_decision(decision),
        started_by=run.started_by,
        started_by_user_id=run.started_by_user_id,
        surface=run.surface,
        created_at=now(),
        queued_at=DbNow(),
        **more,
    )
