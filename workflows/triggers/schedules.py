"""What a schedule starts (spec 1.2, Triggers): each due time one run, whoever fires it.

The claim of a due time is the filtered update that moves `due_at` on from it; the run, the overlap lock and the counts
are written in the same transaction. So any number of schedulers may look at once, and a kill at any line leaves a due
time that is either still due or has its run.
"""

from __future__ import annotations

import logging
import traceback
from datetime import datetime

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, QuerySet

from statestore import faults
from statestore.clock import DbNow
from workflows import registry
from workflows.actors import Actor
from workflows.advance import referred_to
from workflows.engine.redact import redact
from workflows.errors import Refusal
from workflows.models import WORKSPACE, Run, TriggerState
from workflows.registry import SpecFile
from workflows.runs import start_run
from workflows.spec.trigger_model import ScheduleTrigger
from workflows.supervisor import drop_dead_connections
from workflows.times import rfc3339
from workflows.triggers import locks, state
from workflows.triggers.locks import Held, Holding
from workflows.triggers.timetable import latest_due, next_due

logger = logging.getLogger("kampong.scheduler")

#: How long a due time whose run could not be started is put off: at first, and at most.
RETRY_SECONDS, MOST_RETRY_SECONDS = 5, 300


def fire_due() -> int:
    """One pass over the served schedules: start what is due, look after the locks; how many runs were started.

    A file that is broken or gone fires nothing. Its due time stays, and is made up for once. What fails for one of
    them is raised when the others had their turn, so that the loop rests before it tries again.
    """
    files = registry.registry().files()
    served = {file.agent_id: file for file in files if isinstance(file.spec.agent.trigger, ScheduleTrigger)}
    if not served:
        return 0
    state.sync(files)
    started = 0
    failed: Exception | None = None
    for held in locks.look(WORKSPACE, served):
        try:
            started += _look_after(served[held.row.agent_id], held)
        except Exception as error:  # noqa: BLE001  (whatever it was, the others are to be fired)
            logger.warning("schedule of %s: %s; the others have their turn", held.row.agent_id, type(error).__name__)
            # A connection that is dead would take the turn of all of them.
            drop_dead_connections()
            failed = failed or error
    if failed is not None:
        raise failed
    return started


def _look_after(file: SpecFile, held: Held) -> bool:
    """See to the lock of one schedule, and start its run if that is due; whether one was started."""
    trigger = file.spec.agent.trigger
    # Another process may know another text of the file: whose turn it is comes from that, then.
    if not isinstance(trigger, ScheduleTrigger) or held.row.definition != state.definition_of(trigger):
        return False
    locks.keep(held, trigger.lock_ttl)
    return _is_due(held) and _fire(file, trigger, held)


def starter(agent_id: str) -> Actor:
    """Who starts the runs of a schedule: nobody but its due times."""
    return Actor(label=f"schedule of {agent_id}", surface="schedule")


def _is_due(held: Held) -> bool:
    retry_at = held.row.retry_at
    return held.row.due_at <= held.moment and (retry_at is None or retry_at <= held.moment)


def _fire(file: SpecFile, trigger: ScheduleTrigger, held: Held) -> bool:
    """Start the run of the due time, or skip it; whether one was started.

    Times that were missed are one: the last of them, and one run.
    """
    if held.holding is Holding.LOST or (held.holding is Holding.GOING and trigger.overlap == "queue"):
        return False
    due = latest_due(trigger.cron, trigger.timezone, held.row.due_at, held.moment)
    following = next_due(trigger.cron, trigger.timezone, held.moment)
    if held.holding is Holding.GOING:
        _skip(held, due, following)
        return False
    try:
        run = _start(file, trigger, held, due, following)
    except (OperationalError, InterfaceError):
        raise
    except Refusal as refusal:
        _put_off(held, due, refusal.message)
        return False
    except Exception as error:  # noqa: BLE001  (whatever it was, the other schedules are to be fired)
        what = redact(traceback.format_exc(), referred_to(file.spec))
        logger.error("schedule of %s: unexpected error\n%s", file.agent_id, what)
        _put_off(held, due, f"unexpected error: {type(error).__name__}; see the log of the scheduler.")
        return False
    if run is None:
        return False
    faults.point("schedule.committed")
    logger.info("schedule of %s: run %s started for %s", file.agent_id, run.uuid, rfc3339(due))
    return True


class _TakenMeanwhile(Exception):
    """Takes back what the transaction wrote: the lock is somebody's after all."""


def _start(file: SpecFile, trigger: ScheduleTrigger, held: Held, due: datetime, following: datetime) -> Run | None:
    """Claim, run and lock in one transaction; None when another process was first. A refused start leaves nothing."""
    try:
        with transaction.atomic():
            if _as_read(held.row).update(due_at=following, retry_at=None) != 1:
                return None
            faults.point("schedule.claimed")
            run = start_run(
                file,
                input=trigger.input,
                actor=starter(file.agent_id),
                headers={"scheduled-at": rfc3339(due)},
                workspace=held.row.workspace,
            ).run
            if not locks.take(held, run, due=due, ttl=trigger.lock_ttl):
                raise _TakenMeanwhile
            TriggerState.objects.filter(pk=held.row.pk).update(
                last_due_at=due,
                fired_at=DbNow(),
                last_run=run,
                lock_freed=False,
                started=F("started") + 1,
                failures=0,
                error="",
            )
            faults.point("schedule.started")
    except _TakenMeanwhile:
        return None
    return run


def _skip(held: Held, due: datetime, following: datetime) -> None:
    """Let a due time go by, visibly: the run before it is still going."""
    skipped = _as_read(held.row).update(
        due_at=following,
        retry_at=None,
        last_due_at=due,
        skipped=F("skipped") + 1,
        skipped_at=DbNow(),
    )
    if skipped == 1 and held.chain is not None:
        logger.info(
            "schedule of %s: skipped %s, run %s is still %s",
            held.row.agent_id,
            rfc3339(due),
            held.chain.newest,
            held.chain.status,
        )


def _put_off(held: Held, due: datetime, why: str) -> None:
    """Note that no run could be started, and when to try again. The due time stays."""
    row = held.row
    seconds = min(MOST_RETRY_SECONDS, RETRY_SECONDS * 2 ** min(row.failures, 10))
    noted = (
        _as_read(row)
        .filter(failures=row.failures)
        .update(failures=F("failures") + 1, failed_at=DbNow(), error=why, retry_at=DbNow(seconds))
    )
    if noted == 1 and why != row.error:
        logger.warning("schedule of %s: no run for %s: %s; tried again until it works", row.agent_id, rfc3339(due), why)


def _as_read(row: TriggerState) -> QuerySet[TriggerState]:
    """The row if what is due, by which text of the file, and who has the lock are still what was read."""
    return TriggerState.objects.filter(
        pk=row.pk,
        due_at=row.due_at,
        definition=row.definition,
        last_run_id=row.last_run_id,
        lock_freed=row.lock_freed,
    )
