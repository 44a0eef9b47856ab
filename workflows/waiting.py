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
    last = run.attempts.filter(step_index=run.step_index, kind="tool").order_by("-n").first()
    made = attempts_made(run, last.step_index, last.step, last.name) if last is not None else 0
    if run.slot_target:
        return f"{until} for its turn (pace), before attempt {made + 1}"
    return f"{until}, before attempt {made + 1}" if made else until


def attempts_made(run: Run, step_index: int, step: str, tool: str) -> int:
    """The attempts of one call: a condition that is decided afresh after a wait may call another tool, with its own.

    What a gate calls inside a step has a name of its own for `step`.
    """
    return run.attempts.filter(step_index=step_index, step=step, kind="tool", name=tool).count()
