"""When each chore of housekeeping is due in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

from workflows.housekeeping import Chore, chores, rest_after


class Rota:
    """Every chore is due at once, and then again so long after it was due; after a full pass, after a rest."""

    def __init__(self, given: Callable[[], tuple[Chore, ...]] = chores) -> None:
        self._given = given
        self._next: dict[str, float] = {}
        self._untold: dict[str, int] = {}

    def due(self) -> list[Chore]:
        """The chores whose time has come; each is due again after its interval, however it goes."""
        moment = time.monotonic()
        found = [chore for chore in self._given() if self._next.get(chore.name, 0.0) <= moment]
        for chore in found:
            self._next[chore.name] = moment + chore.every_seconds
        return found

    def do(self, chore: Chore) -> int:
        """Do one pass of it and say how many things it did."""
        begun = time.monotonic()
        done = chore.run()
        ended = time.monotonic()
        if chore.is_full(done):
            self._next[chore.name] = ended + min(chore.every_seconds, rest_after(ended - begun))
        return done

    def to_tell(self, chore: Chore, done: int) -> int:
        """How many things were done since somebody was told; 0 while full passes follow each other."""
        so_far = self._untold.pop(chore.name, 0) + done
        if chore.is_full(done):
            self._untold[chore.name] = so_far
            return 0
        return so_far

    def seconds_to_next(self, most: float) -> float:
        """How long nothing is due, at most `most`."""
        moment = time.monotonic()
        return min([most, *(max(0.0, at - moment) for at in self._next.values())])
