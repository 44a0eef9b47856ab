"""Sends what lies in the outbox, outside any transaction: at least once, with longer and longer pauses, not for ever.

A row is held by one sender at a time (`held_until`, by a filtered update that also counts the attempt). A sender that
is killed leaves its row held, and after the hold another takes it: what it had sent by then is sent again.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from django.db.models import Q

from approvals.metrics import NOTICES
from approvals.models import Notice, NoticeStatus
from approvals.notices.carriers import NotSent, OutOfDate, TryLater, Undeliverable, carrier_of
from approvals.notices.outbox import UPDATES
from approvals.wording import is_open
from statestore.clock import DbNow
from statestore.faults import point
from workflows.metrics.runs import CLAIMS_LOST

logger = logging.getLogger("kampong.notices")

#: Longer than any carrier takes.
HOLD_SECONDS = 60
#: The pauses after each failed attempt, in seconds; after the last of them there is one more attempt.
PAUSES = (10, 30, 120, 600, 1800, 3600, 7200)
MOST_ATTEMPTS = len(PAUSES) + 1
LONGEST_PAUSE = 24 * 3600
BATCH = 100
PASS_SECONDS = 20.0

Outcome: TypeAlias = Literal["done", "later", "away"]

#: They ask somebody to act, which is idle once the request is over.
_ASKING = ("opened", "reminder", "escalated", "handed")


def send_due(limit: int = BATCH) -> int:
    """Send what is due; how many notices are dealt with for good: sent, dropped or given up.

    One bounded pass, safe in several processes at once. A channel that is away is left alone for the rest of the pass,
    so that it keeps the others waiting once and not once a notice.
    """
    away: set[str] = set()
    until = time.monotonic() + PASS_SECONDS
    done = 0
    for _ in range(limit):
        found = _next(away)
        if found is None or time.monotonic() > until:
            break
        notice = _take(*found)
        if notice is None:
            continue  # another sender was quicker
        outcome = _send(notice)
        done += outcome == "done"
        if outcome == "away":
            away.add(notice.address)
    return done


def try_again(pk: int) -> bool:
    """Let a notice that was given up begin anew; False when it was not given up."""
    fresh: dict[str, Any] = {"status": NoticeStatus.WAITING, "attempts": 0, "due_at": DbNow(), "held_until": None}
    return Notice.objects.filter(pk=pk, status=NoticeStatus.FAILED).update(**fresh, error="") == 1


def _due() -> Any:
    free = Q(held_until__isnull=True) | Q(held_until__lte=DbNow())
    return Notice.objects.filter(free, status=NoticeStatus.WAITING, due_at__lte=DbNow())


def _next(away: set[str]) -> tuple[int, int] | None:
    """Id and attempts so far of the notice that is due longest."""
    found: tuple[int, int] | None = (
        _due().exclude(address__in=away).order_by("due_at", "id").values_list("pk", "attempts").first()
    )
    return found


def _take(pk: int, attempts: int) -> Notice | None:
    """The notice, ours for HOLD_SECONDS; None when another sender took it."""
    taken = _due().filter(pk=pk, attempts=attempts).update(held_until=DbNow(HOLD_SECONDS), attempts=attempts + 1)
    if taken != 1:
        return None
    point("notices.taken")
    return Notice.objects.select_related("request__run").get(pk=pk)


def _send(notice: Notice) -> Outcome:
    """Send it and say what came of it. The number of the attempt is the fence: a late sender marks nothing."""
    try:
        sent_as = _carried(notice)
    except OutOfDate as reason:
        _mark(notice, status=NoticeStatus.DROPPED, error=str(reason))
        return "done"
    except Undeliverable as problem:
        _give_up(notice, problem)
        return "done"
    except TryLater as problem:
        return _later(notice, problem)
    point("notices.sent")
    _mark(notice, status=NoticeStatus.SENT, sent_as=sent_as, sent_at=DbNow(), error="")
    return "done"


def _carried(notice: Notice) -> str:
    request = notice.request
    if request is not None and notice.about in _ASKING and not is_open(request):
        raise OutOfDate("the request was over before this left")
    if notice.about in UPDATES:
        _in_order(notice)
    if notice.attempts > MOST_ATTEMPTS:
        raise Undeliverable("its sender was lost again and again while it sent this")
    carrier = carrier_of(notice.channel)
    if carrier is None:
        raise Undeliverable(f"nothing here carries notices by {notice.channel}")
    return carrier.send(notice)


def _in_order(notice: Notice) -> None:
    """Of what changes one message the newest counts, and it waits until no older one is under way."""
    same = Notice.objects.filter(request=notice.request_id, channel=notice.channel, address=notice.address)
    if same.filter(about__in=UPDATES, pk__gt=notice.pk).exclude(status=NoticeStatus.FAILED).exists():
        raise OutOfDate("a newer one brings the message up to date")
    if same.filter(pk__lt=notice.pk, status=NoticeStatus.WAITING, held_until__gt=DbNow()).exists():
        raise TryLater("what it changes is just being sent", 2.0, counts=False)


def _later(notice: Notice, problem: TryLater) -> Outcome:
    if not problem.counts:
        _mark(notice, due_at=DbNow(problem.after_seconds or 0.0), attempts=notice.attempts - 1)
        return "later"
    if notice.attempts >= MOST_ATTEMPTS:
        _give_up(notice, problem)
        return "done"
    asked = min(problem.after_seconds or 0.0, LONGEST_PAUSE)
    pause = max(float(PAUSES[notice.attempts - 1]), asked)
    _tell_operator(notice, problem, f"it is tried again in {timedelta(seconds=round(pause))}")
    _mark(notice, due_at=DbNow(pause), error=str(problem))
    if not problem.whole_channel:
        return "later"
    if asked:
        waiting = Notice.objects.filter(status=NoticeStatus.WAITING, channel=notice.channel, address=notice.address)
        waiting.filter(due_at__lt=DbNow(asked)).update(due_at=DbNow(asked))
    return "away"


def _give_up(notice: Notice, problem: NotSent) -> None:
    _tell_operator(notice, problem, "it is not tried again unless somebody says so (admin, Notices)")
    _mark(notice, status=NoticeStatus.FAILED, error=str(problem))


def _tell_operator(notice: Notice, problem: NotSent, move: str) -> None:
    """One line a failing notice; its later failures are in the admin."""
    if not notice.error:
        logger.warning(
            "notice %s (%s, %s) did not leave: %s; %s", notice.pk, notice.channel, notice.about, problem, move
        )


def _mark(notice: Notice, **facts: Any) -> None:
    """What became of this attempt, unless the hold ran out and another sender has the notice by now."""
    ours = Notice.objects.filter(pk=notice.pk, status=NoticeStatus.WAITING, attempts=notice.attempts)
    if ours.update(held_until=None, **facts) == 1:
        NOTICES.add(notice.channel, str(facts.get("status", "put_off")))
    else:
        CLAIMS_LOST.add("notice")
        logger.warning("notice %s: this sender took longer than its hold; another one has it", notice.pk)
