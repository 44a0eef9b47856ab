"""The threads that look after what nobody starts: one for schedules, some for polls."""

from __future__ import annotations

import time

from statestore.conf import value as setting
from workflows import chores
from workflows.supervisor import Loop
from workflows.triggers import schedules
from workflows.triggers.polls import poll_next
from workflows.wakeup import Bell

SHORTEST_REST = 0.05


class Scheduler:
    """Any number may run at once, in one process or in many. Each loop goes on after an error.

    `keeps_house`: does the chores of housekeeping as well, where no worker does them in this process.
    """

    def __init__(self, *, keeps_house: bool = False) -> None:
        bell = Bell()
        pollers = range(1, setting("KAMPONG_POLLERS") + 1)
        self._starting = [
            Loop("scheduler", self._fire, bell),
            *(Loop(f"poller-{number}", self._poll, bell) for number in pollers),
        ]
        self._keepers = chores.loops("scheduler", bell) if keeps_house else []

    def start(self) -> None:
        """Begin to look for what is due."""
        for loop in [*self._starting, *self._keepers]:
            loop.start()

    def stop_taking(self) -> None:
        """Start nothing new from here on; a poll that is being made goes on. Returns at once."""
        for loop in self._starting:
            loop.stop()

    def stop(self, drain_seconds: float) -> None:
        """Let polls and chores that are going on finish within so many seconds. What does not is made up for later."""
        self.stop_taking()
        for loop in self._keepers:
            loop.stop()
        until = time.monotonic() + drain_seconds
        for loop in [*self._starting, *self._keepers]:
            loop.join(max(0.0, until - time.monotonic()))

    def _fire(self) -> float:
        schedules.fire_due()
        return _rest()

    def _poll(self) -> float:
        return 0.0 if poll_next() else _rest()


def _rest() -> float:
    """Until the next look; a setting of 0 is no reason to look without end."""
    return max(SHORTEST_REST, float(setting("KAMPONG_SCHEDULER_SECONDS")))
