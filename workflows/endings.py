"""End a run from outside the driver: one filtered update that also hands out the number of the last event."""

from __future__ import annotations

from typing import Any

from django.db.models import F, Q

from statestore.clock import DbNow
from workflows import codec, keyed
from workflows.engine.events import Cancelled, Expired, Failed, Interrupted, Rejected
from workflows.engine.values import Outputs
from workflows.journal import event_row
from workflows.metrics.runs import ended
from workflows.models import Run, Status

Ending = Cancelled | Expired | Failed | Interrupted | Rejected

_STATUS = {
    Cancelled: Status.CANCELLED,
    Expired: Status.EXPIRED,
    Failed: Status.FAILED,
    Interrupted: Status.INTERRUPTED,
    Rejected: Status.REJECTED,
}


def end_from_outside(run: Run, *, where: Q, event: Ending, outputs: Outputs | None = None) -> bool:
    """Whether the run was still as `where` says, and so ended with this event. Inside the caller's transaction.

    `outputs` come back to the run when its record was taken.
    """
    fields: dict[str, Any] = {} if outputs is None else {"outputs": codec.dump_outputs(outputs)}
    moved = Run.objects.filter(where, pk=run.pk).update(
        status=_STATUS[type(event)],
        error=event.reason if isinstance(event, Rejected) else event.error,
        ended_at=DbNow(),
        lease_owner="",
        lease_until=None,
        last_event=F("last_event") + 1,
        **fields,
    )
    if moved != 1:
        return False
    number = Run.objects.values_list("last_event", flat=True).get(pk=run.pk)
    event_row(run, number, event).save(force_insert=True)
    if isinstance(event, Failed):
        keyed.release(run)
    ended(run, _STATUS[type(event)])
    return True
