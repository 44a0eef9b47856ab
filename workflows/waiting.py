"""What a run waits by itself for, in words for an operator; a person it waits for is told elsewhere."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from statestore.clock import now
from workflows import codec
from workflows.engine.effects import Granted
from workflows.models import Attempt, Run, Status
from workflows.times import rfc3339


def awaited(run: Run) -> str:
    """`until 2026-11-29T10:00:00.000Z, before attempt 3`; "" when the run does not wait for a time."""
    if run.status not in (Status.QUEUED, Status.RUNNING) or run.not_before is None or run.not_before <= now():
        return ""
    until = f"until {rfc3339(run.not_before)}"
    if recalled_until(run) is not None:
        return f"{until}, while its approval can be withdrawn"
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


def recalled_until(run: Run) -> datetime | None:
    """Until when the approval that made this run can be withdrawn (spec 1.2, `recall`): no worker has had it yet.

    None when the run waits for nothing of the kind.
    """
    if run.status != Status.QUEUED or run.lease_token or not run.decision:
        return None
    return run.not_before if run.not_before is not None and run.not_before > now() else None


def begun_under(run: Run, granted: Granted) -> bool:
    """Whether something was called under this approval, by this run or by those of its chain that had it before.

    Calls ahead of the gate are no such, nor is what its check called.
    """
    decision = granted.decision
    holders, earlier = [run.pk], run.resumed_from
    while earlier is not None and codec.load_decision(earlier.decision) == decision:
        holders.append(earlier.pk)
        earlier = earlier.resumed_from
    names = [f"{granted.step}.on_decision", *([granted.step] if decision.phase == "before" else [])]
    behind = Q(step_index__gt=decision.step_index) | Q(step_index=decision.step_index, step__in=names)
    return Attempt.objects.filter(behind, run__in=holders).exists()
