"""Triggers after the clock was set back (SQLite's clock is that of this machine): none is silent until it caught up.

A due time of a schedule that was fired is never due again, whatever the clock says.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from workflows.models import TriggerState
from workflows.spec.trigger_model import PollTrigger, ScheduleTrigger
from workflows.triggers.hold import lease_seconds
from workflows.triggers.timetable import next_due


def pulled_back(row: TriggerState, trigger: ScheduleTrigger | PollTrigger, moment: datetime) -> dict[str, Any]:
    """Columns that no clock which only goes on can have written by this moment, and what they should be."""
    found: dict[str, Any] = {}
    if row.retry_at is not None and row.failed_at is not None and row.failed_at > moment:
        # It is put off for as long as it was then.
        found |= {"failed_at": moment, "retry_at": moment + (row.retry_at - row.failed_at)}
    if isinstance(trigger, PollTrigger):
        return found | _of_poll(row, trigger, moment)
    if row.last_due_at is None and row.created_at > moment:
        found |= {"created_at": moment, "due_at": next_due(trigger.cron, trigger.timezone, moment)}
    return found


def _of_poll(row: TriggerState, trigger: PollTrigger, moment: datetime) -> dict[str, Any]:
    found: dict[str, Any] = {}
    latest = moment + timedelta(seconds=trigger.every)
    if row.due_at > latest:
        found["due_at"] = latest
    # Only what is due is claimed: whoever has it claimed it at a time that is yet to come.
    claimed_after = max(row.due_at, row.retry_at) if row.retry_at is not None else row.due_at
    if row.lease_until is not None and claimed_after > moment:
        ends = moment + timedelta(seconds=lease_seconds())
        if row.lease_until > ends:
            found["lease_until"] = ends
    return found
