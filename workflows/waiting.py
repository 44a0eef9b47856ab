"""What a run waits by itself for, in words for an operator; a person it waits for is told elsewhere."""

from __future__ import annotations

from statestore.clock import now
from workflows.models import Run, Status
from workflows.times import rfc3339


def awaited(run: Run) -> str:
    """`until 2026-11-29T10:00:00.000Z, before attempt 3`; "" when the run does not wait for a time."""
    if run.status not in (Status.QUEUED, Status.RUNNING) or run.not_before is None or run.not_before <= now():
        return ""
    until = f"until {rfc3339(run.not_before)}"
    made = run.attempts.filter(step_index=run.step_index, kind="tool").count()
    if run.slot_target:
        return f"{until} for its turn (pace), before attempt {made + 1}"
    return f"{until}, before attempt {made + 1}" if made else until
