"""A bell inside one process: whoever queued work rings it, and idle workers look at once instead of at the next poll.

Only a wake-up: work that is queued by another process is found by polling.
"""

from __future__ import annotations

import threading


class Bell:
    """Rings are counted, so that one between a look and the wait that follows it is not missed."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rings = 0

    @property
    def rings(self) -> int:
        """How often it rang until now; give it to `wait`."""
        return self._rings

    def ring(self) -> None:
        """Wake everybody who waits."""
        with self._condition:
            self._rings += 1
            self._condition.notify_all()

    def wait(self, heard: int, seconds: float) -> None:
        """Until the next ring after `heard`, at most so long."""
        with self._condition:
            self._condition.wait_for(lambda: self._rings != heard, seconds)


bell = Bell()
