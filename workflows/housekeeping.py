"""What has to be done every few seconds by some process, registered by the app that knows how.

`serve` and `worker` run these supervised; `sweep` runs each that does something once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Chore:
    """`run` does one bounded pass, safe in several processes at once, and answers how many things it did.

    `calls_out`: it waits for services outside, so that it keeps no other chore waiting for it. `batch`: how many things
    a full pass does; after one there is probably more, and the next is due after a rest instead of the whole interval.
    `only_tells`: it writes to the log of the process what it saw, and does nothing that could be counted.
    """

    name: str
    every_seconds: float
    run: Callable[[], int]
    calls_out: bool = False
    batch: int | None = None
    only_tells: bool = False

    def is_full(self, done: int) -> bool:
        """Whether a pass that did so much has probably left something."""
        return self.batch is not None and done >= self.batch


#: Between two full passes of a chore the database is others' for so many times as long as the pass took, at least so
#: many seconds: decisions keep their pace, however much there is to do.
REST, SHORTEST_REST = 2.0, 0.02


def rest_after(seconds: float) -> float:
    """How long to rest after a full pass that took so long."""
    return max(SHORTEST_REST, seconds * REST)


_chores: dict[str, Chore] = {}


def register(
    name: str,
    every_seconds: float,
    run: Callable[[], int],
    *,
    calls_out: bool = False,
    batch: int | None = None,
    only_tells: bool = False,
) -> None:
    """Add a chore; registering a name again replaces it."""
    _chores[name] = Chore(
        name=name, every_seconds=every_seconds, run=run, calls_out=calls_out, batch=batch, only_tells=only_tells
    )


def chores() -> tuple[Chore, ...]:
    """All chores, in the order in which they were registered."""
    return tuple(_chores.values())
