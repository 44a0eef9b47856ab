"""Signs of life of the worker processes, with the names of their environment variables and never a value."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from statestore.clock import DbNow
from workflows.heartbeat import owner
from workflows.models import WorkerBeat

BEAT_SECONDS = 3.0
ALIVE_SECONDS = 10.0
_FORGOTTEN_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class Beat:
    """A worker process that was alive a moment ago. `environment` are the names of the variables that it has."""

    owner: str
    host: str
    pid: int
    environment: frozenset[str]
    started_at: datetime
    seen_at: datetime


def beat() -> None:
    """Say that this worker process lives."""
    # An empty variable counts as unset wherever one is read.
    names = json.dumps(sorted(name for name, content in os.environ.items() if content))
    mine = WorkerBeat.objects.filter(owner=owner())
    if mine.update(seen_at=DbNow(), environment=names):
        return
    WorkerBeat.objects.create(
        owner=owner(),
        host=socket.gethostname()[:255],
        pid=os.getpid(),
        environment=names,
        started_at=DbNow(),
        seen_at=DbNow(),
    )


def leave() -> None:
    """This worker process takes nothing more."""
    WorkerBeat.objects.filter(owner=owner()).delete()


def alive(within_seconds: float = ALIVE_SECONDS) -> list[Beat]:
    """The worker processes that were seen within so many seconds, the first started first."""
    rows = WorkerBeat.objects.filter(seen_at__gt=DbNow(-within_seconds)).order_by("started_at", "id")
    return [
        Beat(
            owner=row.owner,
            host=row.host,
            pid=row.pid,
            environment=frozenset(json.loads(row.environment)),
            started_at=row.started_at,
            seen_at=row.seen_at,
        )
        for row in rows
    ]


def lacking(names: Iterable[str]) -> tuple[str, ...]:
    """The names that no living worker process has; all of them when there is no such process."""
    present = frozenset[str]().union(*(one.environment for one in alive()))
    return tuple(sorted(set(names) - present))


def prune() -> int:
    """Forget processes that were not seen for an hour."""
    return WorkerBeat.objects.filter(seen_at__lt=DbNow(-_FORGOTTEN_SECONDS)).delete()[0]
