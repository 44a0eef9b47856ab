"""Many chains of runs that have ended, as rows, for the tests that clean up."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from statestore.clock import now
from workflows.models import Run, RunEvent, Status
from workflows.registry import SpecFile
from workflows.runs import pin

#: Runs of one chain, and events of one run.
RUNS, EVENTS = 2, 3


def finished(spec: SpecFile, many: int, *, days_ago: float = 30, status: Status = Status.COMPLETED) -> None:
    """So many chains that ended so, one second after the other; nobody was asked."""
    pin(spec, "default")
    begun = now() - timedelta(days=days_ago)
    roots = Run.objects.bulk_create(_run(spec, begun + timedelta(seconds=n), Status.RESUMED) for n in range(many))
    tips = Run.objects.bulk_create(_run(spec, root.created_at, status, root) for root in roots)
    for root, tip in zip(roots, tips, strict=True):
        root.resumed_as = tip
    Run.objects.bulk_update(roots, ["resumed_as"], batch_size=500)
    RunEvent.objects.bulk_create(
        RunEvent(run=run, number=number, type="step_started", payload='{"step": "s"}', at=begun)
        for run in (*roots, *tips)
        for number in range(1, EVENTS + 1)
    )


def _run(spec: SpecFile, at: datetime, status: Status, root: Run | None = None) -> Run:
    times: dict[str, Any] = {"created_at": at, "queued_at": at, "ended_at": at}
    place: dict[str, Any] = {
        "agent_id": spec.agent_id,
        "spec_hash": spec.hash,
        "source": str(spec.path),
        "last_event": EVENTS,
    }
    return Run(status=status, input="go", root=root, resumed_from=root, **times, **place)


def whole(spec: SpecFile) -> int:
    """How many of them are there, each of them whole with its events."""
    runs = Run.objects.filter(agent_id=spec.agent_id)
    chains = runs.filter(root=None).count()
    assert runs.count() == chains * RUNS
    assert RunEvent.objects.filter(run__in=runs).count() == chains * RUNS * EVENTS
    return chains
