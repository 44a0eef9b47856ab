"""What the store hands out, and the interface that the database store and its in-memory twin share."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeAlias

from statestore.jsontext import Json


class Absent(enum.Enum):
    """No live entry. A stored `null` is a value (None) and something else."""

    ABSENT = "absent"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = Absent.ABSENT

#: Seconds, or a timedelta; None for an entry that stays.
Lifetime: TypeAlias = float | timedelta | None


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a put wrote beside the value."""

    version: int
    expires_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Versioned:
    """A value as read; `version` is what a later `bump`, `replace`, `delete` or `claim` must still find."""

    value: Json
    version: int
    expires_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a list that carries values."""

    key: str
    value: Json
    version: int
    expires_at: datetime | None
    created_at: datetime


class Store(Protocol):
    """A keyed store for one workflow of one workspace. Expired is absent, for all but `take_expired`."""

    workspace: str
    workflow: str
    kinds: tuple[str, ...]

    def get(self, key: str, default: Any = None) -> Json:
        """The value, or `default` when there is no live entry (pass ABSENT to tell that from a stored null)."""

    def versioned(self, key: str) -> Versioned | None:
        """The value with its version and expiry."""

    def several(self, names: Iterable[str]) -> dict[str, Versioned]:
        """The live ones among these keys, in one statement: a thousand keys or so, not a million."""

    def exists(self, key: str) -> bool:
        """Whether `get` would find something."""

    def put(self, key: str, value: Json, ttl: Lifetime = None) -> Written:
        """Write or overwrite; the new lifetime replaces the old one, also when it is none."""

    def put_if_absent(self, key: str, value: Json, ttl: Lifetime = None) -> bool:
        """Write and answer True only if no live entry exists: one winner, across processes."""

    def replace(self, key: str, version: int, value: Json) -> bool:
        """Put another value under the version as read, keeping the expiry; False when somebody was quicker."""

    def renew(self, key: str, version: int, ttl: Lifetime) -> bool:
        """Give the entry as read another lifetime from now on, keeping its value; False when somebody was quicker."""

    def bump(self, key: str, version: int) -> bool:
        """Raise the version as read, keeping all else; the act that gets True goes on, every other reads again."""

    def delete(self, key: str, version: int | None = None) -> bool:
        """Take the entry away; True for exactly one caller, and only with the version as read if one is given."""

    def claim(self, key: str, version: int | None = None) -> Json:
        """A delete that hands its one winner the value; ABSENT for everybody else."""

    def take_expired(self, key: str, default: Any = None) -> Json:
        """Take away an entry whose time is over: the mirror of `claim`, one of the two wins. `default` if none is."""

    def list(self, prefix: str = "", *, after: str | None = None, limit: int | None = None) -> tuple[str, ...]:
        """Live keys that start with `prefix`, in code point order, beyond `after`, at most `limit`."""

    def entries(self, prefix: str = "", *, after: str | None = None, limit: int | None = None) -> tuple[Entry, ...]:
        """The same with values, which cost their decoding."""
