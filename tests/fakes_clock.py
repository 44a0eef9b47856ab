"""A clock that takes no time and remembers what it was asked to sleep; it starts at a whole second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A `Clock` for runs in memory. `seconds` are the sleeps in order; sleeping moves the present."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self.seconds: list[float] = []

    @property
    def sleeps_ms(self) -> list[int]:
        """The sleeps in whole milliseconds."""
        return [round(seconds * 1000) for seconds in self.seconds]

    def moment(self) -> float:
        """Seconds since its start; what a pacer reckons with."""
        return sum(self.seconds)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.moment())

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
