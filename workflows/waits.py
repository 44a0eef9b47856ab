"""The time that a run waits by. Tests give a clock that does not take the time; a replay does not wait at all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeAlias

from django.db.models import Q

from statestore import clock
from statestore.clock import DbNow
from workflows.draining import draining

#: A longer wait gives the worker back: the run is queued until its time has come (design 3.1).
WORKER_WAITS_SECONDS = 60.0

#: Queued runs whose time has come.
DUE = Q(not_before__isnull=True) | Q(not_before__lte=DbNow())

#: Hears how many seconds the run waits now, and for the slot of which target; no target means before another attempt.
Waiter: TypeAlias = Callable[[float, str], None]


class Clock(Protocol):
    """What a wait before a call goes by."""

    def now(self) -> datetime:
        """The present, aware."""

    def sleep(self, seconds: float) -> None:
        """Return when so many seconds are over, or earlier when the process is about to end."""


class ProcessClock:
    """The real one."""

    def now(self) -> datetime:
        return clock.now()

    def sleep(self, seconds: float) -> None:
        draining.wait(seconds)


process_clock = ProcessClock()
