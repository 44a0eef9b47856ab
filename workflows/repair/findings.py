"""What is looked for, and what is found: a check finds suspects cheaply, then judges each by one consistent look.

What belongs together is written in one transaction, so a single snapshot never shows half of it. Pages of suspects may:
they are read in several statements. So nothing is reported that was not seen in a snapshot of its own, and what
several transactions do one after the other is reported only once it is old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from django.db import connection, transaction

from workflows.actors import Actor

#: What a worker or a chore does at once is late after so many seconds, and not just under way.
LATE_SECONDS: Final = 60
#: So long a chore may be behind, as after a restart, before somebody should know.
BEHIND_SECONDS: Final = 600


@dataclass(frozen=True, kw_only=True)
class By:
    """Who mends, and what they said why."""

    actor: Actor
    reason: str = ""

    def because(self, what: str) -> str:
        """The reason of an audit entry: what was wrong, and the operator's words."""
        return f"queue_doctor: {what}" + (f" ({self.reason})" if self.reason else "")


class Moved(Exception):
    """A filtered update met nothing: it changed meanwhile. All of this mend is rolled back."""


Mend: TypeAlias = Callable[[By], None]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One mismatch in words: what is wrong, since when, what it means for people.

    `fix` is what `mend` does. `move` is what an operator has to do, where nothing can be mended safely. `apart`: the
    mend is a door of its own, safe whoever else is at it, and is called after the transaction that judged.
    """

    code: str
    subject: str
    what: str
    means: str
    run: str = ""
    since: datetime | None = None
    fix: str = ""
    move: str = ""
    apart: bool = False
    mend: Mend | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if bool(self.fix) != (self.mend is not None) or not (self.fix or self.move):
            raise ValueError(f"{self.code}: say what --fix does, or what an operator has to do")


Suspect: TypeAlias = Any


def _lock_nothing(suspect: Suspect) -> None:
    """For mends of one row, whose filtered update says it all."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """`suspects` reads pages, `judge` one case in a snapshot: None where nothing is wrong.

    `lock` is called before a case is judged again in order to be mended, inside that transaction. It locks rows in the
    order in which everybody does: record, request, run.
    """

    name: str
    codes: tuple[str, ...]
    suspects: Callable[[Scope], Iterable[Suspect]]
    judge: Callable[[Suspect], Finding | None]
    lock: Callable[[Suspect], None] = _lock_nothing


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How much is looked at: what is active and the newest rows of each table, or everything.

    `tell` hears of each page: the name of the table and how many of its rows were looked at.
    """

    everything: bool = False
    recent: int = 10_000
    page: int = 500
    tell: Callable[[str, int], None] = lambda name, done: None

    def pages(self, rows: Any, active: Any, name: str) -> Iterator[list[int]]:
        """Primary keys in pages; `active` filters what is looked at whatever its age, and has an index for it."""
        done = 0
        for page in self._everything(rows) if self.everything else self._recent(rows, active):
            yield page
            done += len(page)
            self.tell(name, done)

    def _everything(self, rows: Any) -> Iterator[list[int]]:
        after = 0
        while page := list(rows.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[: self.page]):
            yield page
            after = page[-1]

    def _recent(self, rows: Any, active: Any) -> Iterator[list[int]]:
        newest = rows.order_by("-pk").values_list("pk", flat=True).first()
        if newest is None:
            return
        # Numbers alone: a hundred thousand that wait are a few megabytes.
        found = set(rows.filter(active).order_by().values_list("pk", flat=True))
        found.update(rows.filter(pk__gt=newest - self.recent).order_by().values_list("pk", flat=True))
        keys = sorted(found)
        for start in range(0, len(keys), self.page):
            yield keys[start : start + self.page]


@contextmanager
def snapshot() -> Iterator[None]:
    """Everything read inside is of one moment. On SQLite by holding the write lock, for a few reads."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost and connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def need(count: int) -> None:
    """Moved unless a filtered update met its one row."""
    if count != 1:
        raise Moved
