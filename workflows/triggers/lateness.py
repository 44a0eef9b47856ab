"""When a trigger is overdue: its time came a while ago, its file still has it, nothing holds it, and nobody fired it.

One rule for the doctor, the metrics and the pages: no scheduler is at work that has its file, or that can read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from django.db.models import QuerySet

from statestore.clock import DbNow, db_now
from workflows import registry
from workflows.models import TriggerState
from workflows.spec.trigger_model import PollTrigger, ScheduleTrigger
from workflows.triggers import locks
from workflows.triggers.locks import Held, Holding
from workflows.triggers.state import timed

#: So long a scheduler may be away, as for a restart, before somebody should know.
OVERDUE_SECONDS: Final = 600

Timed: TypeAlias = ScheduleTrigger | PollTrigger


def is_overdue(row: TriggerState, trigger: Timed | None, held: Held | None, moment: datetime) -> bool:
    """The rule. `trigger` is what the served file says, None where none does; `held` who has a schedule's lock."""
    if trigger is None or trigger.type != row.kind:
        return False
    times = (row.due_at, row.retry_at, row.lease_until)
    if max(time for time in times if time is not None) >= moment - timedelta(seconds=OVERDUE_SECONDS):
        return False
    holding = held.holding if held is not None else Holding.FREE
    waits = isinstance(trigger, ScheduleTrigger) and trigger.overlap == "queue" and holding is Holding.GOING
    return not waits and holding is not Holding.LOST


def due_for_long() -> QuerySet[TriggerState]:
    """All rows of which the rule may be true."""
    return TriggerState.objects.filter(due_at__lt=DbNow(-OVERDUE_SECONDS))


def served() -> Mapping[str, Timed]:
    """The triggers in the files that this process serves. Reads them: not inside a transaction."""
    return {file.agent_id: trigger for file in registry.registry().files() if (trigger := timed(file)) is not None}


def number_overdue() -> int:
    """How many are, of those in the files that this process serves."""
    rows = list(due_for_long())
    triggers = served() if rows else {}
    rows = [row for row in rows if row.agent_id in triggers]
    if not rows:
        return 0
    moment = db_now()
    held = {
        one.row.pk: one
        for workspace in {row.workspace for row in rows}
        for one in locks.look(workspace, [row.agent_id for row in rows])
    }
    return sum(is_overdue(row, triggers[row.agent_id], held.get(row.pk), moment) for row in rows)
