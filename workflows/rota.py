"""When each chore of housekeeping is due in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

from workflows.housekeeping import Chore, chores


class Rota:
    """Every chore is due at once, and then again so long after it was due."""

    def __init__(self, given: Callable[[], tuple[Chore, ...]] = chores) -> None:
        self._given = given
        self._next: dict[str, float] = {}

    def due(self) -> list[Chore]:
        """The chores whose time has come; each is due again after its interval, however it goes."""
        moment = time.monotonic()
        found = [chore for chore in self._given() if self._next.get(chore.name, 0.0) <= moment]
        for chore in found:
            self._next[chore.name] = moment + chore.every_seconds
        return found

    def seconds_to_next(self, most: float) -> float:
        """How long nothing is due, at most `most`."""
        moment = time.monotonic()
        return min([most, *(max(0.0, at - moment) for at in self._next.values())])
