"""When a schedule starts its next run (spec 1.2, Triggers)."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from statestore.clock import now
from workflows.doctor.findings import Check, Patient, passed
from workflows.spec.trigger_model import ScheduleTrigger
from workflows.times import rfc3339
from workflows.triggers.timetable import next_due


def look(patient: Patient) -> Iterator[Check]:
    """The next due time, on the clock of its zone and in UTC."""
    trigger = patient.spec.agent.trigger
    if not isinstance(trigger, ScheduleTrigger):
        return
    due = next_due(trigger.cron, trigger.timezone, now())
    local = f"{due.astimezone(ZoneInfo(trigger.timezone)):%a %Y-%m-%d %H:%M} in {trigger.timezone}"
    yield passed("schedule", f'"{trigger.cron}" is due at {local}, {rfc3339(due)}; `serve` or `scheduler` starts it')
