"""The outbox does not grow for ever: what is dealt with is deleted after a while."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q

from approvals.models import Notice, NoticeStatus, RequestStatus
from statestore.clock import DbNow

DAY = 24 * 3600.0
#: So long after it was due an operator finds what left, or was dropped; what failed can be tried again for longer.
KEPT, FAILED_KEPT = 30 * DAY, 90 * DAY
BATCH = 1000


def prune(limit: int = BATCH) -> int:
    """Delete at most `limit` notices that nobody needs any more and say how many; safe in several processes at once.

    Never one that waits; and what was posted of a request stays as long as the request can still change: it is by that
    row that the message is brought up to date.
    """
    with transaction.atomic():
        # On Postgres another process deletes other rows instead of waiting for these; SQLite has one writer anyway.
        found = _old().select_for_update(skip_locked=True, of=("self",)).order_by("due_at").values_list("pk", flat=True)
        return Notice.objects.filter(pk__in=list(found[:limit])).delete()[0]


def _old() -> Any:
    done = Q(status__in=(NoticeStatus.SENT, NoticeStatus.DROPPED), due_at__lte=DbNow(-KEPT))
    failed = Q(status=NoticeStatus.FAILED, due_at__lte=DbNow(-FAILED_KEPT))
    over = ~Q(request__status=RequestStatus.OPEN)
    fixed = Q(request__recall_until__isnull=True) | Q(request__recall_until__lte=DbNow())
    return Notice.objects.filter(done | failed).filter(Q(request__isnull=True) | (over & fixed))
