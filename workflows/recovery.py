"""What happens to runs whose worker is gone, and to queued runs whose message is lost (design 3.1, 4).

An open attempt means an effect of unknown fate: the run is interrupted at once, never repeated by itself. Without one
it goes back to the queue; the third lost worker parks it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Q

from statestore.clock import DbNow
from workflows.endings import end_from_outside
from workflows.engine.events import Interrupted
from workflows.models import Attempt, Run, Status
from workflows.tasks import advance_run, enqueue
from workflows.waits import DUE

logger = logging.getLogger("kampong.recovery")

RESEND_AFTER_SECONDS = 5
MOST_TAKEOVERS = 2
BATCH = 100


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """What one pass did."""

    resent: int = 0
    requeued: int = 0
    interrupted: int = 0


def _say_nothing(run: Run, act: str) -> None:
    """Nobody listens."""


def recover(tell: Callable[[Run, str], None] = _say_nothing) -> Recovered:
    """One pass. Safe to run anywhere, any number of times at once.

    `tell` hears of each run after the commit: `resent`, `requeued` or `interrupted`.
    """
    requeued = interrupted = 0
    lost = Run.objects.filter(status=Status.RUNNING, lease_until__lt=DbNow()).order_by("id")
    for run in lost[:BATCH]:
        outcome = take_from_lost_worker(run)
        requeued += outcome == "requeued"
        interrupted += outcome == "interrupted"
        if outcome:
            tell(run, outcome)
    return Recovered(resent=_resend(tell), requeued=requeued, interrupted=interrupted)


def take_from_lost_worker(run: Run) -> str:
    """`requeued`, `interrupted`, or `` when the worker was there after all. One transaction."""
    still_lost = Q(status=Status.RUNNING, lease_token=run.lease_token, lease_until__lt=DbNow())
    with transaction.atomic():
        # Take the row first: a worker that wakes now meets the fence before it can open another attempt.
        taken = Run.objects.filter(still_lost, pk=run.pk).update(lease_token=F("lease_token") + 1)
        if taken != 1:
            return ""
        mine = Q(status=Status.RUNNING, lease_token=run.lease_token + 1)
        open_attempt = Attempt.objects.filter(run=run, ended_at__isnull=True).order_by("-n").first()
        if open_attempt is not None:
            error = (
                f"interrupted at step {open_attempt.step}: the worker was lost during a call of {open_attempt.name}, "
                "and nobody knows whether it took effect; check there, then retry or give up"
            )
            event = Interrupted(step=open_attempt.step, error=error)
        elif run.takeovers >= MOST_TAKEOVERS:
            event = Interrupted(step=run.step or None, error="lost its worker three times; retry or give up")
        else:
            Run.objects.filter(mine, pk=run.pk).update(
                status=Status.QUEUED,
                takeovers=F("takeovers") + 1,
                queued_at=DbNow(),
                lease_owner="",
                lease_until=None,
            )
            run.refresh_from_db()
            enqueue(run)
            logger.warning("run %s lost its worker; queued again", run.uuid)
            return "requeued"
        end_from_outside(run, where=mine, event=event)
    logger.error("run %s interrupted: %s", run.uuid, event.error)
    return "interrupted"


def _resend(tell: Callable[[Run, str], None]) -> int:
    """Enqueue again what has been queued and due for too long: its message may be lost. A doubled one does no harm."""
    too_long = Q(queued_at__lt=DbNow(-RESEND_AFTER_SECONDS))
    if not advance_run.get_backend().supports_defer:
        # Queued for later, so nothing was sent yet: its message is not lost, it is due now.
        too_long |= Q(not_before__gte=F("queued_at"))
    waiting = Run.objects.filter(DUE, too_long, status=Status.QUEUED).order_by("id")
    resent = 0
    for run in waiting[:BATCH]:
        with transaction.atomic():
            again = Run.objects.filter(too_long, pk=run.pk, status=Status.QUEUED).update(queued_at=DbNow())
            if again == 1:
                enqueue(run)
        if again == 1:
            tell(run, "resent")
            resent += 1
    return resent
