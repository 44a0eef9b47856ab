"""What opened and closed in the queue, handed to whoever watches: one thread a process, only while somebody does.

Once a second the thread reads which requests wait, the oldest thousand of them, and tells every watcher the difference
to the time before. The database is the truth: however a request ended (decided, expired, cancelled, removed), and
whichever process did it, it is not there any more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, InterfaceError, connections

from approvals import counting
from approvals.models import ApprovalRequest
from approvals.queue import open_requests, summary
from workflows.api.authentication import Standing, still_standing
from workflows.draining import draining
from workflows.pooling import give_connection_back

logger = logging.getLogger(__name__)

TURN_SECONDS = 1.0
RECHECK_SECONDS = 10.0
#: Summaries in one message: as many as a page of `GET /approvals` has.
PAGE = 50

#: Why a socket is closed from here; the numbers of WebSocket (RFC 6455), 4403 for what HTTP calls 403.
NOT_ALLOWED, GOING_AWAY, TOO_SLOW = 4403, 1001, 1013

Message = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Closed:
    """Nothing more will come."""

    code: int


@dataclass(eq=False, kw_only=True)
class Watch:
    """One watcher, who may watch as long as one of `standings` holds.

    `deliver` is called from the thread and must not block; False ends the watch.
    """

    standings: frozenset[Standing]
    deliver: Callable[[Message | Closed], bool]
    number: int = field(default=-1, init=False)


class QueueTailer:
    """Follows the queue for watchers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._watches: set[Watch] = set()
        self._thread: threading.Thread | None = None
        self._keys: dict[int, str] = {}
        self._checked_at = 0.0

    def watch(self, watch: Watch) -> None:
        """Deliver a snapshot and then what changes, until `leave`."""
        with self._lock:
            self._watches.add(watch)
            self._wake.set()
            if self._thread is None:
                self._keys = {}
                self._thread = threading.Thread(target=self._tail, name="kampong-queue-tailer", daemon=True)
                self._thread.start()

    def leave(self, watch: Watch) -> None:
        """This watcher is gone; told more than once, it is gone all the same."""
        with self._lock:
            self._watches.discard(watch)
            if not self._watches:
                self._wake.set()

    @property
    def watchers(self) -> int:
        """How many watch now."""
        with self._lock:
            return len(self._watches)

    @property
    def running(self) -> bool:
        """Whether the thread lives; it ends once nobody watches."""
        return self._thread is not None

    def _tail(self) -> None:
        try:
            while self._still_watched():
                try:
                    self._turn()
                except (DatabaseError, InterfaceError) as error:
                    # Nothing was told: the next turn tells the whole difference.
                    logger.warning("cannot read the queue (%s); trying again", type(error).__name__)
                    connections.close_all()
                self._wake.wait(TURN_SECONDS)
        finally:
            connections.close_all()

    def _still_watched(self) -> bool:
        """Otherwise this thread is signed off in the same breath, so that the next watcher starts another."""
        with self._lock:
            if self._watches:
                self._wake.clear()
                return True
            self._thread = None
            return False

    def _turn(self) -> None:
        with self._lock:
            watches = list(self._watches)
        if draining.is_set():
            self._close(watches, GOING_AWAY)
            return
        if time.monotonic() - self._checked_at > RECHECK_SECONDS:
            watches = self._allowed(watches)
            self._checked_at = time.monotonic()
        waiting: dict[int, str] = dict(open_requests().values_list("pk", "key")[: counting.MOST + 1])
        opened, closed = _difference(self._keys, waiting)
        fresh = [watch for watch in watches if watch.number < 0]
        told = [watch for watch in watches if watch.number >= 0] if opened or closed else []
        allowed = set(self._allowed([*fresh, *told]))
        # All that is told is read before any of it is sent: after an error nothing is told twice.
        snapshot = [_snapshot(waiting)] if allowed.intersection(fresh) else []
        changes = _changes(waiting, opened, closed) if allowed.intersection(told) else []
        self._deliver(allowed.intersection(fresh), snapshot)
        self._deliver(allowed.intersection(told), changes)
        self._keys = waiting
        give_connection_back()

    def _deliver(self, watches: Iterable[Watch], messages: list[Message]) -> None:
        for watch in watches:
            for message in messages:
                watch.number += 1
                if not watch.deliver({**message, "number": watch.number}):
                    self.leave(watch)
                    break

    def _allowed(self, watches: list[Watch]) -> list[Watch]:
        """Those who may still see; the others are sent away: somebody deactivated a moment ago gets no more."""
        standing = still_standing(one for watch in watches for one in watch.standings) if watches else set()
        self._close([watch for watch in watches if watch.standings.isdisjoint(standing)], NOT_ALLOWED)
        return [watch for watch in watches if not watch.standings.isdisjoint(standing)]

    def _close(self, watches: Iterable[Watch], code: int) -> None:
        for watch in watches:
            watch.deliver(Closed(code=code))
            self.leave(watch)


def _difference(before: dict[int, str], now: dict[int, str]) -> tuple[list[int], list[str]]:
    """Which came, by id, and which went, by key. Of more than a thousand, those behind the last one are not known."""
    last = max(now) if len(now) > counting.MOST else None
    went = [str(key) for pk, key in before.items() if pk not in now and (last is None or pk < last)]
    return [pk for pk in now if pk not in before], went


def _snapshot(waiting: dict[int, str]) -> Message:
    return {"type": "snapshot", "waiting": _count(waiting), "approvals": _summaries(list(waiting)[:PAGE])}


def _changes(waiting: dict[int, str], opened: list[int], closed: list[str]) -> list[Message]:
    parts = [opened[start : start + PAGE] for start in range(0, max(len(opened), 1), PAGE)]
    return [
        {
            "type": "changed",
            "waiting": _count(waiting),
            "opened": _summaries(part),
            "closed": closed if part is parts[0] else [],
        }
        for part in parts
    ]


def _count(waiting: dict[int, str]) -> int | str:
    return len(waiting) if len(waiting) <= counting.MOST else f"{counting.MOST}+"


def _summaries(pks: list[int]) -> list[Message]:
    """The lines of these as `GET /approvals` has them, in its order."""
    rows = ApprovalRequest.objects.filter(pk__in=pks).select_related("run").order_by("id") if pks else ()
    return [summary(row) for row in rows]


#: The tailer of this process.
tailer = QueueTailer()
