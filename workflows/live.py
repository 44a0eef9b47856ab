"""New events of watched runs, handed to whoever watches: one thread a process, and only while somebody does (design 4).

The thread asks once a turn for the watched rows, and reads events only of runs that moved. It follows a chain: when a
watched run was resumed, its watchers go on with the successor. The database is the truth: every watch has its own
place in it, so nothing is missed and nothing told twice.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from django.db import DatabaseError, InterfaceError

from workflows import reading
from workflows.api.authentication import Standing, still_standing
from workflows.draining import draining
from workflows.models import Run
from workflows.tailing import Tailing

logger = logging.getLogger(__name__)

TURN_SECONDS = 0.1
RECHECK_SECONDS = 3.0
_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class News:
    """One event of one run of the watched chain."""

    run_uuid: str
    frame: reading.Frame


@dataclass(frozen=True, kw_only=True)
class Closed:
    """Nothing more will come; `reason` is for people."""

    reason: str


Item: TypeAlias = News | Closed


@dataclass(eq=False, kw_only=True)
class Watch:
    """One watcher, who has seen the events of run `run_id` up to number `position`.

    `deliver` is called from the tailer's thread and must not block; False ends the watch.
    """

    run_id: int
    position: int
    standing: Standing
    deliver: Callable[[Item], bool]


@dataclass(frozen=True, kw_only=True)
class _Row:
    pk: int
    last_event: int
    successor: int | None
    pruned: bool


class Tailer(Tailing[Watch]):
    """Follows runs for watchers."""

    name, reads, turn_seconds = "kampong-tailer", "events", TURN_SECONDS

    def __init__(self) -> None:
        super().__init__()
        self._checked_at = 0.0

    def _turn(self) -> None:
        if draining.is_set():
            self._close(self._all(), "the server is going away; connect again")
            return
        if time.monotonic() - self._checked_at > RECHECK_SECONDS:
            self._checked_at = time.monotonic()
            self._allowed(self._all())
        by_run: dict[int, list[Watch]] = {}
        for watch in self._all():
            by_run.setdefault(watch.run_id, []).append(watch)
        rows = list(_rows(by_run))
        for gone in by_run.keys() - {row.pk for row in rows}:
            self._close(by_run[gone], "the run is not kept any more")
        for row in rows:
            try:
                self._look_at(row, by_run[row.pk])
            except (DatabaseError, InterfaceError):
                raise
            except Exception:
                # One run that cannot be read must not end the streams of all the others.
                logger.exception("cannot read the events of run %s", row.pk)
                self._close(by_run[row.pk], "the run cannot be read")

    def _look_at(self, row: _Row, watches: list[Watch]) -> None:
        if row.pruned:
            # What they have not seen is not there any more; the state, with which they begin again, is.
            self._close(watches, "the events are not kept any more; connect again")
            return
        behind = [watch for watch in watches if watch.position < row.last_event]
        if behind:
            self._hand_out(row.pk, behind)
        if row.successor is not None:
            for watch in watches:
                watch.run_id, watch.position = row.successor, 0

    def _hand_out(self, pk: int, watches: list[Watch]) -> None:
        run = Run.objects.get(pk=pk)
        frames = list(reading.frames(run, after=min(watch.position for watch in watches)))
        # Asked when there is something to tell: somebody deactivated a moment ago gets no further event.
        for watch in self._allowed(watches):
            for frame in frames:
                if frame.number <= watch.position:
                    continue
                watch.position = frame.number
                if not watch.deliver(News(run_uuid=str(run.uuid), frame=frame)):
                    self.leave(watch)
                    break

    def _allowed(self, watches: list[Watch]) -> list[Watch]:
        """Those who may still see; the others are sent away."""
        standing = still_standing(watch.standing for watch in watches)
        self._close([watch for watch in watches if watch.standing not in standing], "not allowed any more")
        return [watch for watch in watches if watch.standing in standing]

    def _close(self, watches: Iterable[Watch], reason: str) -> None:
        for watch in watches:
            watch.deliver(Closed(reason=reason))
            self.leave(watch)

    def _lost(self, watches: list[Watch]) -> None:
        self._close(watches, "events cannot be read; connect again")


def _rows(run_ids: Iterable[int]) -> Iterator[_Row]:
    ids = iter(run_ids)
    while batch := list(itertools.islice(ids, _BATCH)):
        for pk, last_event, successor, pruned_at in Run.objects.filter(pk__in=batch).values_list(
            "pk", "last_event", "resumed_as_id", "pruned_at"
        ):
            yield _Row(pk=pk, last_event=last_event, successor=successor, pruned=pruned_at is not None)


#: The tailer of this process.
tailer = Tailer()
