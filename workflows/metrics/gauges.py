"""What is true now of runs, the queue, workers, triggers and the store, read from the database.

As many statements whatever there is. Nothing is locked, and no run that is over is read: those that are final are
counted as they end (`runs.ENDED`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TypeAlias

from django.db.models import Case, Count, DateTimeField, F, Max, Min, Q, When
from django.db.models.functions import Coalesce, Greatest

from statestore.clock import DbNow
from statestore.models import StateRecord
from workflows import beats
from workflows.metrics.counters import MOST_AGENTS, Gauge, Labels
from workflows.models import Run, Status, TriggerState, WorkerBeat
from workflows.triggers.lateness import number_overdue
from workflows.waits import DUE

Reading: TypeAlias = tuple[Gauge, Labels, float]

#: The statuses in which somebody still has to do something: few, however many runs there were.
_STANDING = (Status.QUEUED, Status.RUNNING, Status.AWAITING, Status.INTERRUPTED)

#: A scheduler tries again at `retry_at`; so long after it there is none that has the file.
_GIVEN_UP_SECONDS = 3600.0

RUNS = Gauge("kampong_runs", "Runs that are queued, running, waiting for a person, or interrupted.", ("status",))
QUEUE_DEPTH = Gauge("kampong_queue_depth", "Queued runs that are due: what workers are behind with.")
QUEUE_OLDEST = Gauge("kampong_queue_oldest_seconds", "How long the oldest of them has been due; 0 when there is none.")
WORKERS = Gauge("kampong_workers_alive", "Worker processes that gave a sign of life in the last ten seconds.")
TRIGGER_FAILURES = Gauge(
    "kampong_trigger_failures",
    "How often in a row a schedule or poll has failed by now; left out where the last time went well, or nobody has "
    "tried again for an hour.",
    ("agent", "kind"),
)
TRIGGERS_OVERDUE = Gauge(
    "kampong_triggers_overdue",
    "Schedules and polls in the files of this process that have been due for ten minutes, are held by nothing, and "
    "that no scheduler fires.",
)
EXPIRED_ENTRIES = Gauge(
    "kampong_store_expired_entries", "Entries of the store that have expired and are not yet cleared away."
)

GAUGES = (RUNS, QUEUE_DEPTH, QUEUE_OLDEST, WORKERS, TRIGGER_FAILURES, TRIGGERS_OVERDUE, EXPIRED_ENTRIES)


def read(moment: datetime) -> Iterator[Reading]:
    """All of them, as they are at this moment of the database."""
    by_status = Run.objects.filter(status__in=_STANDING).order_by().values_list("status").annotate(number=Count("*"))
    found = dict(by_status)
    for status in _STANDING:
        yield RUNS, (status.value,), found.get(status.value, 0)
    yield from _queue(moment)
    alive = WorkerBeat.objects.filter(seen_at__gt=DbNow(-beats.ALIVE_SECONDS))
    yield WORKERS, (), alive.count()
    yield from _failing()
    yield TRIGGERS_OVERDUE, (), number_overdue()
    yield EXPIRED_ENTRIES, (), StateRecord.objects.filter(expires_at__lte=DbNow()).count()


def _failing() -> Iterator[Reading]:
    """Of what is tried again. The row of a file that is gone stays as it failed last, and is nobody's alarm."""
    tried = Q(retry_at__isnull=True) | Q(retry_at__gt=DbNow(-_GIVEN_UP_SECONDS))
    failing = TriggerState.objects.filter(tried, failures__gt=0).values_list("agent_id", "kind")
    for agent, kind, failures in failing.annotate(most=Max("failures")).order_by("-most", "agent_id")[:MOST_AGENTS]:
        yield TRIGGER_FAILURES, (agent, kind), failures


def _queue(moment: datetime) -> Iterator[Reading]:
    """A run that nobody took yet is due since it was made: recovery moves `queued_at` on each time it sends again."""
    entered = Case(When(started_at__isnull=True, then=F("created_at")), default=F("queued_at"))
    since = Greatest(entered, Coalesce("not_before", entered), output_field=DateTimeField())
    queue = Run.objects.filter(DUE, status=Status.QUEUED).aggregate(depth=Count("*"), oldest=Min(since))
    yield QUEUE_DEPTH, (), queue["depth"]
    yield QUEUE_OLDEST, (), age(queue["oldest"], moment)


def age(since: datetime | None, moment: datetime) -> float:
    """Seconds since then; 0 when there is nothing."""
    return max(0.0, (moment - since).total_seconds()) if since is not None else 0.0
