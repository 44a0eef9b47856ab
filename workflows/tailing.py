"""What every tailer does: one thread a process, and only while somebody watches (design 4)."""

from __future__ import annotations

import logging
import threading
from typing import Generic, TypeVar

from django.db import DatabaseError, InterfaceError, connections

from workflows.crossing import crossing

logger = logging.getLogger(__name__)

AFTER_ERROR_SECONDS = 1.0

W = TypeVar("W")


class Tailing(Generic[W]):
    """Holds the watchers and the thread that asks the database for them, turn after turn."""

    #: The thread's name, and what it reads, in words.
    name: str
    reads: str
    turn_seconds: float

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._watches: set[W] = set()
        self._thread: threading.Thread | None = None

    def watch(self, watch: W) -> None:
        """Deliver what follows this watch's place, until `leave`."""
        crossing.listen(self.nudge)
        with self._lock:
            self._watches.add(watch)
            if self._thread is None:
                self._wake.clear()
                self._begin()
                self._thread = threading.Thread(target=self._tail, name=self.name, daemon=True)
                self._thread.start()

    def leave(self, watch: W) -> None:
        """This watcher is gone; told more than once, it is gone all the same."""
        with self._lock:
            self._watches.discard(watch)
            if not self._watches:
                self._wake.set()

    def nudge(self) -> None:
        """Look now, and not at the end of the turn: something was written."""
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

    def _begin(self) -> None:
        """Before the thread starts."""

    def _turn(self) -> None:
        """Read what is new, and hand it out."""
        raise NotImplementedError

    def _lost(self, watches: list[W]) -> None:
        """The thread ended by an error that nobody foresaw: send these away, so that they connect again."""
        raise NotImplementedError

    def _all(self) -> list[W]:
        with self._lock:
            return list(self._watches)

    def _tail(self) -> None:
        try:
            while self._still_watched():
                try:
                    self._turn()
                    self._wake.wait(self.turn_seconds)
                except (DatabaseError, InterfaceError) as error:
                    # Watchers keep their places, and read on when the database is back.
                    logger.warning("cannot read %s (%s); trying again", self.reads, type(error).__name__)
                    connections.close_all()
                    self._wake.wait(AFTER_ERROR_SECONDS)
        finally:
            connections.close_all()
            self._lost(self._left_behind())

    def _still_watched(self) -> bool:
        """Otherwise this thread is signed off in the same breath, so that the next watcher starts another."""
        with self._lock:
            if self._watches:
                self._wake.clear()
                return True
            self._thread = None
            return False

    def _left_behind(self) -> list[W]:
        """Who still waits for this thread when it ends; it is signed off, so that the next watcher starts another."""
        with self._lock:
            if self._thread is not threading.current_thread():
                return []
            self._thread = None
            found = list(self._watches)
            self._watches.clear()
            return found
