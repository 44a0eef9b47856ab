"""What a poll starts (spec 1.2, Triggers): a run for each item of its tool's answers that nobody has seen.

Any number of pollers may look at once: at most one polls an agent at a time. A poll that was missed for long is one
poll, and the time between two counts from the end of the first.
"""

from __future__ import annotations

import logging
import traceback
from dataclasses import replace
from typing import Final

from django.db import DatabaseError, InterfaceError
from django.db.models import F

from statestore.clock import DbNow
from statestore.faults import point
from workflows import registry
from workflows.advance import referred_to, world_for
from workflows.driver import perform
from workflows.engine.polling import Polled, PollFailed, poll
from workflows.engine.redact import redact
from workflows.engine.retrying import LONGEST_SECONDS
from workflows.errors import Refusal
from workflows.journal import HandedBack, LeaseLost
from workflows.models import WORKSPACE, TriggerState
from workflows.pacing import DatabasePacer
from workflows.registry import SpecFile
from workflows.runs import check_start
from workflows.spec.trigger_model import PollTrigger
from workflows.triggers import state
from workflows.triggers.handover import Handover, starter
from workflows.triggers.hold import ComeBack, Hold, PollJournal, free, in_time

logger = logging.getLogger("kampong.scheduler")

#: A poll that goes on failing is made once an hour, or as often as its file says where that is rarer.
MOST_RETRY_SECONDS: Final = 3600
_MOST_DOUBLINGS: Final = 12
_NEXT: Final = "The position did not move; it is polled again."


def poll_next(workspace: str = WORKSPACE) -> bool:
    """Poll one agent that is due and that nobody polls, the longest due first; False when there is none.

    Not inside a transaction: it calls out.
    """
    polled = {
        file.agent_id: (file, trigger)
        for file in registry.registry().files()
        if isinstance(trigger := file.spec.agent.trigger, PollTrigger)
    }
    if not polled:
        return False
    state.sync([file for file, _ in polled.values()], workspace)
    due = TriggerState.objects.filter(free(), workspace=workspace, kind="poll", agent_id__in=polled)
    for row in due.order_by("due_at", "id"):
        hold = Hold.claim(row)
        if hold is not None:
            _poll(*polled[row.agent_id], hold)
            return True
    return False


def _poll(file: SpecFile, trigger: PollTrigger, hold: Hold) -> None:
    """One poll from its claim to its end. What fails is told in the row, and keeps no other poll from being made."""
    row = hold.row
    point("poll.claimed")
    try:
        _ask_and_hand_over(file, trigger, hold)
    except LeaseLost as lost:
        logger.warning("%s; nothing more is written or called", lost)
        return
    except HandedBack as back:
        hold.mine.update(lease_until=None)
        logger.info("%s", back)
        return
    except ComeBack as problem:
        _failed(trigger, hold, str(problem), at_least=problem.seconds)
        return
    except PollFailed as problem:
        _failed(trigger, hold, str(problem))
        return
    except Refusal as refusal:
        _failed(trigger, hold, refusal.message)
        return
    except (DatabaseError, InterfaceError) as error:
        # Where it does not come back, this is raised too, and the poll is made again when its lease is over.
        logger.warning("poll of %s: %s: %s", row.agent_id, type(error).__name__, str(error).strip())
        _failed(trigger, hold, f"the database failed: {type(error).__name__}; see the log of the scheduler.")
        return
    except Exception as error:  # noqa: BLE001  (whatever it was, the other polls are to be made)
        what = redact(traceback.format_exc(), referred_to(file.spec))
        logger.error("poll of %s: unexpected error\n%s", row.agent_id, what)
        _failed(trigger, hold, f"unexpected error: {type(error).__name__}; see the log of the scheduler.")
        return
    if row.failures:
        logger.warning("poll of %s: works again after %d failures", row.agent_id, row.failures)


def _ask_and_hand_over(file: SpecFile, trigger: PollTrigger, hold: Hold) -> None:
    check_start(file, starter(file.agent_id))
    handover = Handover(file, trigger, hold)
    world = replace(world_for(file.spec), pacer=DatabasePacer(hold.row.workspace))
    journal = PollJournal(hold)
    try:
        polled = perform(in_time(poll(file.spec, trigger, handover.position)), world, journal)
    except ComeBack:
        raise
    except PollFailed as problem:
        # What the server asked for goes beyond the tool's own retries, and holds where it has none.
        raise ComeBack(str(problem), journal.asked_for()) from problem
    if not isinstance(polled, Polled):
        raise TypeError("a poll waits for nobody")
    started = handover.hand_over(polled)
    if started:
        logger.info("poll of %s: %d runs started for %d items", file.agent_id, started, len(polled.items))


def _failed(trigger: PollTrigger, hold: Hold, why: str, at_least: float = 0.0) -> None:
    """Say so in the row, and put the poll off: for longer each time. Nothing else moves."""
    row = hold.row
    backoff = min(trigger.every * 2 ** min(row.failures, _MOST_DOUBLINGS), MOST_RETRY_SECONDS)
    seconds = max(trigger.every, backoff, min(at_least, LONGEST_SECONDS))
    error = f"{why if why.endswith(('.', '!', '?')) else f'{why}.'} {_NEXT}"
    written = hold.mine.update(
        failures=F("failures") + 1,
        failed_at=DbNow(),
        error=error,
        retry_at=DbNow(seconds),
        lease_until=None,
    )
    if written == 1 and error != row.error:
        logger.warning("poll of %s: %s", row.agent_id, error)
