"""The worker threads of one process: they take messages, recover lost runs and keep house."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.db import DatabaseError, InterfaceError

from statestore.conf import value as setting
from workflows import beats, chores, messages, recovery
from workflows.pooling import give_connection_back
from workflows.supervisor import Loop
from workflows.tasks import advance_run
from workflows.wakeup import Bell, bell

logger = logging.getLogger("kampong.worker")

#: The bell rings for each message; this is for a ring that was missed.
_BROKER_PAUSE = 1.0


class WorkerPool:
    """Worker threads, one keeper for signs of life and recovery, two for chores; each goes on after an error."""

    def __init__(self, threads: int | None = None) -> None:
        count = threads if threads is not None else setting("KAMPONG_WORKERS")
        self._busy: set[str] = set()
        self._own_bell = Bell()
        self._recover_at = 0.0
        self._broker = _broker(count, self._perform)
        self._workers = [Loop(f"worker-{n}", self._work, bell) for n in range(1, count + 1)]
        self._keepers = [
            Loop("worker-keeper", self._keep, self._own_bell),
            *chores.loops("worker", self._own_bell),
        ]

    def start(self) -> None:
        """Begin to take messages."""
        for loop in [*self._keepers, *self._workers]:
            loop.start()
        if self._broker is not None:
            self._broker.start()

    def stop_taking(self) -> None:
        """Take nothing new from here on; what runs goes on. Returns at once."""
        if self._broker is not None:
            self._broker.stop_taking()
        for loop in self._workers:
            loop.stop()

    def stop(self, drain_seconds: float) -> tuple[str, ...]:
        """Let what runs finish within so many seconds; the ids of the runs that did not."""
        self.stop_taking()
        until = time.monotonic() + drain_seconds
        for loop in self._workers:
            loop.join(max(0.0, until - time.monotonic()))
        if self._broker is not None:
            self._broker.stop()
        for loop in self._keepers:
            loop.stop()
        for loop in self._keepers:
            loop.join(max(1.0, until - time.monotonic()))
        try:
            beats.leave()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("could not sign off (%s); this worker is forgotten in a moment", error)
        return tuple(sorted(self._busy))

    def _work(self) -> float:
        if self._broker is not None:
            return self._work_for_the_broker()
        message = messages.take()
        if message is None:
            return float(setting("KAMPONG_POLL_SECONDS"))
        self._perform(*message)
        return 0.0

    def _work_for_the_broker(self) -> float:
        work = self._broker.take()
        if work is None:
            give_connection_back()
            return _BROKER_PAUSE
        work()
        return 0.0

    def _perform(self, workspace: str, run_id: str) -> None:
        self._busy.add(run_id)
        try:
            advance_run.call(workspace, run_id)
        finally:
            self._busy.discard(run_id)

    def _keep(self) -> float:
        beats.beat()
        if time.monotonic() >= self._recover_at:
            self._recover_at = time.monotonic() + setting("KAMPONG_RECOVER_SECONDS")
            recovery.recover()
        return float(min(beats.BEAT_SECONDS, max(0.05, self._recover_at - time.monotonic())))


def _broker(threads: int, perform: Callable[[str, str], None]) -> Any:
    """Where messages come from a broker, what takes them from it; None where they lie in the database."""
    if setting("KAMPONG_QUEUE") != "celery":
        return None
    # Only here: Celery is installed where it is used.
    return import_module("workflows.brokers.taking").Broker(threads, perform, bell)
