"""Threads that go on: an error ends one turn, is logged, and the loop starts again after a pause."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError, connections

from workflows.wakeup import Bell

logger = logging.getLogger("kampong.worker")

ERROR_PAUSE = 1.0


class Loop(threading.Thread):
    """Calls `turn` until it is stopped. `turn` answers how many seconds to wait before the next one."""

    def __init__(self, name: str, turn: Callable[[], float], bell: Bell, *, error_pause: float = ERROR_PAUSE) -> None:
        # A daemon: a call that never returns must not keep the process after its drain.
        super().__init__(name=name, daemon=True)
        self._turn = turn
        self._bell = bell
        self._error_pause = error_pause
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Start no further turn; the one that runs goes on to its end."""
        self._stopping.set()
        self._bell.ring()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                heard = self._bell.rings
                pause = self._one_turn()
                if pause is None:
                    self._stopping.wait(self._error_pause)
                elif pause > 0 and not self._stopping.is_set():
                    self._bell.wait(heard, pause)
        finally:
            connections.close_all()

    def _one_turn(self) -> float | None:
        """The wait that the turn asked for; None after an error."""
        try:
            _look_for_the_file_again()
            return self._turn()
        except (DatabaseError, InterfaceError) as error:
            # Locked, restarted, out of connections: it happens, and it passes.
            logger.warning("%s: %s: %s; starting again", self.name, type(error).__name__, str(error).strip())
        except (Exception, SystemExit):
            # Whatever it was must not end the thread: the other runs are to be served.
            logger.exception("%s: unexpected error; starting again", self.name)
        drop_dead_connections()
        return None


def _look_for_the_file_again() -> None:
    """A SQLite file may have been replaced (a backup restored): one kept open would be written to, unseen, for ever."""
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "sqlite":
            connection.close_if_unusable_or_obsolete()


def drop_dead_connections() -> None:
    """Of this thread, after an error: what it does next opens new ones."""
    for connection in connections.all(initialized_only=True):
        try:
            connection.close_if_unusable_or_obsolete()
        except Exception as error:  # noqa: BLE001  (any error: so broken that it cannot even be closed)
            logger.warning("a connection is given up: %s", error)
            connection.connection = None
