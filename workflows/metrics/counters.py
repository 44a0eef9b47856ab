"""Numbers that a process counts while it works, and the names of those that are read from the database.

They are plain numbers behind a lock: a command that is never scraped pays nothing for a library, and counting costs a
run about a microsecond. Labels come from closed lists, and agents are limited: no keys, no ids, nothing of a caller's.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Labels: TypeAlias = tuple[str, ...]

#: So many agents have a number of their own; what comes after them is counted together.
MOST_AGENTS = 500
OTHERS = "(others)"


class _Metric:
    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        self.name = name
        self.help = help
        self.labels = labels


class Gauge(_Metric):
    """A number of now, read from the database when it is asked for."""


class Counter(_Metric):
    """A number that only grows, since the process started. Label values that are `known` begin at 0."""

    def __init__(self, name: str, help: str, labels: Labels = (), *, known: Iterable[Labels] = ()) -> None:
        super().__init__(name, help, labels)
        self._lock = threading.Lock()
        self._numbers: dict[Labels, int] = dict.fromkeys(known, 0)

    def add(self, *labels: str) -> None:
        """One more."""
        with self._lock:
            self._numbers[labels] = self._numbers.get(labels, 0) + 1

    def numbers(self) -> dict[Labels, int]:
        """As they are now."""
        with self._lock:
            return dict(self._numbers)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How many observations fell into each bucket (the last has no upper bound), and their sum."""

    counts: tuple[int, ...]
    total: float


class Histogram(_Metric):
    """How long something took, in seconds, since the process started; `bounds` are upper ones, in order."""

    def __init__(self, name: str, help: str, labels: Labels, bounds: tuple[float, ...]) -> None:
        super().__init__(name, help, labels)
        self.bounds = bounds
        self._lock = threading.Lock()
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, seconds: float, *labels: str) -> None:
        """One more, that took so long. A clock that went back took no time."""
        seconds = max(0.0, seconds)
        place = bisect_left(self.bounds, seconds)
        with self._lock:
            self._counts.setdefault(labels, [0] * (len(self.bounds) + 1))[place] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def spreads(self) -> dict[Labels, Spread]:
        """As they are now."""
        with self._lock:
            return {key: Spread(counts=tuple(counts), total=self._sums[key]) for key, counts in self._counts.items()}


class Limited:
    """Lets so many different names through; every later one is `(others)`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: set[str] = set()

    def name(self, name: str) -> str:
        with self._lock:
            if name not in self._known:
                if len(self._known) >= self._most:
                    return OTHERS
                self._known.add(name)
        return name


agents = Limited(MOST_AGENTS)
