"""What opened and closed in the queue, handed to whoever watches: one thread a process, only while somebody does.

Once a second the thread reads which requests wait, the oldest thousand of them, and tells every watcher the difference
to the time before. The database is the truth: however a request ended (decided, expired, cancelled, removed), and
whichever process did it, it is not there any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from approvals import counting
from approvals.models import ApprovalRequest
from approvals.queue import open_requests, summary
from workflows.api.authentication import Standing, still_standing
from workflows.draining import draining
from workflows.pooling import give_connection_back
from workflows.tailing import Tailing

TURN_SECONDS = 1.0
RECHECK_SECONDS = 10.0
#: Summaries in one message: as many as a page of `GET /approvals` has.
PAGE = 50

#: Why a socket is closed from here; the numbers of WebSocket (RFC 6455), 4403 for what HTTP calls 403.
NOT_ALLOWED, GOING_AWAY, TOO_SLOW, TRY_AGAIN = 4403, 1001, 1013, 1013

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


class QueueTailer(Tailing[Watch]):
    """Follows the queue for watchers; each is delivered a snapshot first."""

    name, reads, turn_seconds = "kampong-queue-tailer", "the queue", TURN_SECONDS

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[int, str] = {}
        self._checked_at = 0.0

    def watch(self, watch: Watch) -> None:
        """Deliver a snapshot at once and then what changes, until `leave`."""
        super().watch(watch)
        self._wake.set()

    def _begin(self) -> None:
        self._keys = {}

    def _lost(self, watches: list[Watch]) -> None:
        self._close(watches, TRY_AGAIN)

    def _turn(self) -> None:
        watches = self._all()
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
