"""What deciding counts, and what is true now of requests and notices (read from the database, two statements)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial, wraps
from typing import ParamSpec, Protocol, TypeVar

from django.db import transaction
from django.db.models import Count, Min, Q

from approvals.models import ApprovalRequest, Notice, NoticeStatus, RequestStatus
from statestore.clock import DbNow
from workflows.bound import bound
from workflows.errors import Refusal
from workflows.metrics.counters import Counter, Gauge, Histogram
from workflows.metrics.gauges import Reading, age

logger = logging.getLogger("kampong.approvals")

_HOUR, _DAY = 3600.0, 86400.0

LATENCY = Histogram(
    "kampong_decision_latency_seconds",
    "From when a request was opened until it was decided, or expired.",
    ("outcome", "surface"),
    (10.0, 60.0, 300.0, 900.0, _HOUR, 4 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 30 * _DAY),
)
DECIDE = Histogram(
    "kampong_decide_seconds",
    "How long it took to answer a decision: `approved`, `rejected`, `voted` (others must approve as well), or the code "
    "of the refusal.",
    ("answer",),
    (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
NOTICES = Counter(
    "kampong_notices_total",
    "Attempts to send a notice: `sent`, `dropped` (out of date), `put_off` (tried again later), `failed` (given up).",
    ("channel", "outcome"),
)

WAITING = Gauge("kampong_approvals_waiting", "Requests that wait for a decision.")
OLDEST = Gauge("kampong_approvals_oldest_seconds", "How long the oldest of them has waited; 0 when there is none.")
OVERDUE = Gauge("kampong_approvals_overdue", "Requests whose lifetime is over and whose end nobody has written yet.")
UNSENT = Gauge("kampong_notices_waiting", "Notices in the outbox that are still to be sent.")
UNSENT_OLDEST = Gauge(
    "kampong_notices_oldest_seconds", "How long the oldest of them has been there; 0 when there is none."
)
GIVEN_UP = Gauge("kampong_notices_given_up", "Notices that did not leave and are not tried again by themselves.")

GAUGES = (WAITING, OLDEST, OVERDUE, UNSENT, UNSENT_OLDEST, GIVEN_UP)


class _Answered(Protocol):
    """What a decision comes to; see `approvals.services.Outcome`."""

    @property
    def decision(self) -> dict[str, str]: ...

    @property
    def votes(self) -> object: ...


Given = ParamSpec("Given")
Answer = TypeVar("Answer", bound=_Answered)


def timed(decide: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Measure how long each call takes, by what it comes to."""

    @wraps(decide)
    def measured(*args: Given.args, **options: Given.kwargs) -> Answer:
        began, came_to = time.monotonic(), "error"
        try:
            outcome = decide(*args, **options)
            came_to = "voted" if outcome.votes is not None else outcome.decision["outcome"]
        except Refusal as refusal:
            came_to = refusal.code
            raise
        finally:
            DECIDE.observe(time.monotonic() - began, came_to)
        return outcome

    return measured


def closed(request: ApprovalRequest, *, outcome: str, surface: str, at: datetime) -> None:
    """A request was decided or expired then: counted and told when the transaction is committed."""
    transaction.on_commit(partial(_closed, request, outcome, surface, at))


def _closed(request: ApprovalRequest, outcome: str, surface: str, at: datetime) -> None:
    LATENCY.observe((at - request.created_at).total_seconds(), outcome, surface)
    run = request.run
    with bound(run=run.uuid, agent=run.agent_id, workspace=run.workspace, step=request.step, key=request.key):
        logger.info("request %s (%s)", outcome, surface)


def read(moment: datetime) -> Iterator[Reading]:
    """What waits, as it is at this moment of the database."""
    waiting = ApprovalRequest.objects.filter(status=RequestStatus.OPEN)
    # Apart from each other: the counts come out of an index alone.
    counts = waiting.aggregate(all=Count("*"), overdue=Count("expires_at", filter=Q(expires_at__lte=DbNow())))
    yield WAITING, (), counts["all"]
    yield OVERDUE, (), counts["overdue"]
    yield OLDEST, (), age(waiting.aggregate(oldest=Min("created_at"))["oldest"], moment)
    standing = Notice.objects.filter(status__in=[NoticeStatus.WAITING, NoticeStatus.FAILED]).order_by()
    counted = standing.values_list("status").annotate(number=Count("*"), oldest=Min("created_at"))
    notices = {status: (number, oldest) for status, number, oldest in counted}
    unsent, oldest = notices.get(NoticeStatus.WAITING, (0, None))
    yield UNSENT, (), unsent
    yield UNSENT_OLDEST, (), age(oldest, moment)
    yield GIVEN_UP, (), notices.get(NoticeStatus.FAILED, (0, None))[0]
