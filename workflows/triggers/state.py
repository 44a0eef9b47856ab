"""The row of each schedule and poll: made when a served file has one, reckoned anew when the file says otherwise."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import F

from statestore.clock import DbNow, db_now, now
from workflows.models import WORKSPACE, TriggerState
from workflows.registry import SpecFile
from workflows.spec.trigger_model import PollTrigger, ScheduleTrigger
from workflows.times import rfc3339
from workflows.triggers.setback import pulled_back
from workflows.triggers.timetable import next_due

logger = logging.getLogger("kampong.scheduler")

#: What a trigger has done before it has done anything. A poll that is under way loses its hold.
_FRESH: Final[dict[str, Any]] = {
    "lease_token": F("lease_token") + 1,
    "lease_until": None,
    "last_due_at": None,
    "fired_at": None,
    "last_run": None,
    "lock_freed": False,
    "started": 0,
    "skipped": 0,
    "skipped_at": None,
    "items": None,
    "new_items": None,
    "failures": 0,
    "failed_at": None,
    "error": "",
    "created_at": DbNow(),
}


def timed(file: SpecFile) -> ScheduleTrigger | PollTrigger | None:
    """The trigger of this spec, if it is one that nobody calls."""
    trigger = file.spec.agent.trigger
    return trigger if isinstance(trigger, ScheduleTrigger | PollTrigger) else None


def sync(files: Iterable[SpecFile], workspace: str = WORKSPACE) -> None:
    """Give every schedule and poll among the served files its row. Safe in several processes at once.

    A row whose file says another time is due by the new one from now on; what was missed by the old one is not made
    up for. Processes with different files take turns at that, which polls no service more often than one of them would.
    The row of a file that is gone stays, for its lock, its cursor and its counts, and is not due. One whose file has a
    trigger of the other kind begins anew: nothing that the old one did holds the new one, or is told as its own. Nor
    does one wait for a time that only a clock which was set back since can have named.
    """
    wanted = {file.agent_id: trigger for file in files if (trigger := timed(file)) is not None}
    if not wanted:
        return
    rows = TriggerState.objects.filter(workspace=workspace, agent_id__in=wanted)
    present = {row.agent_id: row for row in rows}
    changed = [
        agent_id
        for agent_id, trigger in wanted.items()
        if agent_id not in present or present[agent_id].definition != definition_of(trigger)
    ]
    same = [(row, wanted[agent_id]) for agent_id, row in present.items() if agent_id not in changed]
    # By our own clock first, which costs nothing; what is written goes by the one of every query.
    odd = [(row, trigger) for row, trigger in same if pulled_back(row, trigger, now())]
    if not changed and not odd:
        return
    moment = db_now()
    for ahead, trigger in odd:
        _pull_back(ahead, trigger, moment)
    for agent_id in changed:
        trigger = wanted[agent_id]
        row = present.get(agent_id)
        if row is None:
            fresh = TriggerState(
                workspace=workspace,
                agent_id=agent_id,
                kind=trigger.type,
                definition=definition_of(trigger),
                due_at=first_due(trigger, moment),
                created_at=now(),
            )
            TriggerState.objects.bulk_create([fresh], ignore_conflicts=True)
        else:
            _change(row, trigger, moment)


def _pull_back(row: TriggerState, trigger: ScheduleTrigger | PollTrigger, moment: datetime) -> None:
    """The clock was set back since; what another process did to the row meanwhile is looked at in the next pass."""
    as_read = TriggerState.objects.filter(
        pk=row.pk,
        definition=row.definition,
        due_at=row.due_at,
        retry_at=row.retry_at,
        lease_token=row.lease_token,
        lease_until=row.lease_until,
    )
    changes = pulled_back(row, trigger, moment)
    if changes and as_read.update(**changes) == 1:
        logger.warning("%s of %s: the clock was set back; it waits no longer for that", trigger.type, row.agent_id)


def _change(row: TriggerState, trigger: ScheduleTrigger | PollTrigger, moment: datetime) -> None:
    """Another time; what another process did to the row meanwhile is looked at in the next pass."""
    due_at, retry_at = first_due(trigger, moment), None
    another = row.kind != trigger.type
    if isinstance(trigger, PollTrigger) and not another:
        latest = moment + timedelta(seconds=trigger.every)
        due_at, retry_at = min(row.due_at, latest), min(row.retry_at, latest) if row.retry_at is not None else None
    as_read = TriggerState.objects.filter(
        pk=row.pk, definition=row.definition, due_at=row.due_at, retry_at=row.retry_at
    )
    changes = _FRESH if another else {}
    changed = as_read.update(
        kind=trigger.type, definition=definition_of(trigger), due_at=due_at, retry_at=retry_at, **changes
    )
    if changed == 1:
        next_at = rfc3339(max(due_at, retry_at or due_at))
        logger.info("%s of %s: its file says another time; due at %s", trigger.type, row.agent_id, next_at)


def first_due(trigger: ScheduleTrigger | PollTrigger, after: datetime) -> datetime:
    """When a trigger that was not there before is due: a poll at once, a schedule at its next time."""
    if isinstance(trigger, PollTrigger):
        return after
    return next_due(trigger.cron, trigger.timezone, after)


def definition_of(trigger: ScheduleTrigger | PollTrigger) -> str:
    """A fingerprint of what says when it is due; what it starts may change without it."""
    said = (trigger.cron, trigger.timezone) if isinstance(trigger, ScheduleTrigger) else (str(trigger.every),)
    return hashlib.sha256("\0".join((trigger.type, *said)).encode()).hexdigest()
