"""What has to be done every few seconds by some process, registered by the app that knows how.

`serve` and `worker` run these supervised; `sweep` runs each once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Chore:
    """`run` does one bounded pass, safe in several processes at once, and answers how many things it did.

    `calls_out`: it waits for services outside, so that it keeps no other chore waiting for it.
    """

    name: str
    every_seconds: float
    run: Callable[[], int]
    calls_out: bool = False


_chores: dict[str, Chore] = {}


def register(name: str, every_seconds: float, run: Callable[[], int], *, calls_out: bool = False) -> None:
    """Add a chore; registering a name again replaces it."""
    _chores[name] = Chore(name=name, every_seconds=every_seconds, run=run, calls_out=calls_out)


def chores() -> tuple[Chore, ...]:
    """All chores, in the order in which they were registered."""
    return tuple(_chores.values())
