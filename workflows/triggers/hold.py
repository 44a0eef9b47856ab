"""The hold of one process on one poll: the claim, its fence and its renewal, and what a poll is driven with.

The claim is the filtered update that raises `lease_token`. Every later write of the poll begins with a filtered update
on that token: whoever lost it writes nothing more and calls nobody.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, Final, Never, TypeVar

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest

from statestore.clock import DbNow, now
from statestore.conf import value as setting
from statestore.faults import point
from workflows.draining import draining
from workflows.engine.effects import (
    AskModel,
    CallTool,
    Effect,
    Evaluate,
    Granted,
    KeyEffect,
    Pause,
    ToolFailed,
)
from workflows.engine.events import EngineEvent
from workflows.engine.polling import PollFailed
from workflows.engine.retrying import asked_for
from workflows.journal import HandedBack, LeaseLost
from workflows.models import TriggerState
from workflows.pooling import give_connection_back
from workflows.waits import WORKER_WAITS_SECONDS, Clock

T = TypeVar("T")

#: Beyond the time that one call may take: for a wait before the next one, or for reading the answer.
SPARE_SECONDS: Final = 75.0
#: For all expressions over one answer.
READING_SECONDS: Final = 60.0


def free() -> Q:
    """Rows whose time has come and that nobody holds."""
    put_off = Q(retry_at__isnull=True) | Q(retry_at__lte=DbNow())
    let_go = Q(lease_until__isnull=True) | Q(lease_until__lte=DbNow())
    return Q(due_at__lte=DbNow()) & put_off & let_go


def lease_seconds() -> float:
    """How long a poll is held by whoever is not heard of any more."""
    return float(setting("KAMPONG_TOOL_TIMEOUT") + SPARE_SECONDS)


class Hold:
    """What the process that polls has. Every method raises LeaseLost when it no longer does."""

    def __init__(self, row: TriggerState, token: int, seconds: float) -> None:
        self.row = row
        self._token = token
        self._seconds = seconds
        self._renewed_at = time.monotonic()

    @classmethod
    def claim(cls, row: TriggerState) -> Hold | None:
        """One filtered update: the poll is ours, under a fresh token, or it was not free any more."""
        seconds = lease_seconds()
        hold = cls(row, row.lease_token + 1, seconds)
        claimed = TriggerState.objects.filter(free(), pk=row.pk, lease_token=row.lease_token).update(
            lease_token=row.lease_token + 1, lease_until=DbNow(seconds)
        )
        return hold if claimed == 1 else None

    @property
    def mine(self) -> QuerySet[TriggerState]:
        """The row, while it is ours and a poll's: meanwhile its file may have got another trigger."""
        return TriggerState.objects.filter(pk=self.row.pk, kind="poll", lease_token=self._token)

    def renew(self) -> None:
        """The fence, and a lease from now on; never an earlier one, as SQLite's clock is ours and can go back."""
        asked_at = time.monotonic()
        if self.mine.update(lease_until=Greatest(F("lease_until"), DbNow(self._seconds))) != 1:
            raise LeaseLost(f"poll of {self.row.agent_id}: the lease is gone")
        self._renewed_at = asked_at

    def still_mine(self) -> None:
        """Asked immediately before a request leaves: the lease may have run out meanwhile."""
        if time.monotonic() - self._renewed_at >= self._seconds:
            raise LeaseLost(f"poll of {self.row.agent_id}: the lease ran out before the call")


class ComeBack(PollFailed):
    """The next attempt of the call is too far away to be waited for; `seconds` says how far."""

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


class PollJournal:
    """A `Journal` for what is no run: it keeps no events and no attempts, and asks nobody."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._waited = 0.0
        self._outcome = ""
        self._asked: str | None = None

    def note(self, event: EngineEvent) -> Never:
        raise _not_here(event)

    def opening(self, effect: AskModel | CallTool, name: str) -> None:
        self._hold.renew()
        give_connection_back()

    def closing(self, outcome: object) -> None:
        point("poll.called")
        failed = outcome if isinstance(outcome, ToolFailed) else ToolFailed(error="")
        self._outcome, self._asked = failed.error, failed.retry_after
        self._hold.renew()

    def asked_for(self) -> float:
        """The seconds for which the last answer asked not to be called again; 0 where it asked for nothing."""
        return asked_for(self._asked, now()) or 0.0

    def pause(self, pause: Pause) -> Never:
        raise _not_here(pause)

    def keep(self, effect: KeyEffect) -> Never:
        raise _not_here(effect)

    def is_still_valid(self, granted: Granted) -> Never:
        raise _not_here(granted)

    def still_mine(self) -> None:
        self._hold.still_mine()

    def attempts_made(self, effect: CallTool) -> int:
        """Every poll is a call of its own."""
        return 0

    def holds_slot(self, target: str) -> bool:
        """A poll that was given up gave up its slot."""
        return False

    def wait(self, seconds: float, clock: Clock, slot: str = "") -> None:
        """Here, and for a minute in all: other agents are polled by this thread too."""
        self._waited += seconds
        if self._waited > WORKER_WAITS_SECONDS:
            why = self._outcome or "The tool has to wait for its turn (pace)."
            more = f"It is called again in {seconds:.0f} s at the earliest, which is too long for one poll."
            raise ComeBack(f"{why} {more}", seconds)
        self._hold.renew()
        give_connection_back()
        clock.sleep(seconds)
        if draining.is_set():
            raise HandedBack(f"poll of {self._hold.row.agent_id}: given back, this process ends")


def in_time(asking: Generator[EngineEvent | Effect, Any, T]) -> Generator[EngineEvent | Effect, Any, T]:
    """The same poll, given up where its expressions take longer than a minute in all."""
    spent, answer = 0.0, None
    try:
        while True:
            try:
                item = asking.send(answer)
            except StopIteration as end:
                returned: T = end.value
                return returned
            began = time.monotonic()
            answer = yield item
            spent += time.monotonic() - began if isinstance(item, Evaluate) else 0.0
            if spent > READING_SECONDS:
                raise PollFailed(
                    f"its expressions took longer than {READING_SECONDS:.0f} s over one answer; let the tool ask for "
                    "less at a time"
                )
    finally:
        asking.close()


def _not_here(item: object) -> TypeError:
    return TypeError(f"a poll has no use for {type(item).__name__}")
