"""The store in memory: the same promises for tests and for runs that keep nothing, within one process."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from statestore import keys
from statestore.clock import now
from statestore.entries import ABSENT, Entry, Lifetime, Versioned, Written
from statestore.jsontext import Json, loads
from statestore.scope import Scoped, encode, first_version, seconds_of


@dataclass(frozen=True, kw_only=True)
class _Row:
    text: str
    version: int
    expires_at: datetime | None
    created_at: datetime

    def lives(self, at: datetime) -> bool:
        return self.expires_at is None or self.expires_at > at


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """What several in-memory stores share, as database stores share a table."""

    rows: dict[tuple[str, str, str], _Row] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


class MemoryStore(Scoped):
    """The `Store` of one workflow in one workspace, kept on a shelf in memory."""

    def __init__(
        self, workspace: str, workflow: str, *, kinds: tuple[str, ...] = (), shelf: Shelf | None = None
    ) -> None:
        super().__init__(workspace, workflow, kinds=kinds)
        self.shelf = shelf or Shelf()

    def get(self, key: str, default: Any = None) -> Json:
        row = self._live(key)
        return loads(row.text) if row else default

    def versioned(self, key: str) -> Versioned | None:
        row = self._live(key)
        return Versioned(value=loads(row.text), version=row.version, expires_at=row.expires_at) if row else None

    def several(self, names: Iterable[str]) -> dict[str, Versioned]:
        with self.shelf.lock:
            found = {key: self.versioned(key) for key in names}
        return {key: entry for key, entry in found.items() if entry is not None}

    def exists(self, key: str) -> bool:
        return self._live(key) is not None

    def put(self, key: str, value: Json, ttl: Lifetime = None) -> Written:
        with self.shelf.lock:
            row = self._write(key, value, ttl)
        return Written(version=row.version, expires_at=row.expires_at)

    def put_if_absent(self, key: str, value: Json, ttl: Lifetime = None) -> bool:
        with self.shelf.lock:
            if self._live(key) is not None:
                # The same refusals as when it writes.
                encode(key, value)
                seconds_of(ttl)
                return False
            self._write(key, value, ttl)
            return True

    def replace(self, key: str, version: int, value: Json) -> bool:
        keys.check_key(key, self.kinds)
        return self._update(key, version, text=encode(key, value))

    def renew(self, key: str, version: int, ttl: Lifetime) -> bool:
        keys.check_key(key, self.kinds)
        seconds = seconds_of(ttl)
        return self._update(key, version, expires_at=None if seconds is None else now() + timedelta(seconds=seconds))

    def bump(self, key: str, version: int) -> bool:
        return self._update(key, version)

    def delete(self, key: str, version: int | None = None) -> bool:
        return self.claim(key, version) is not ABSENT

    def claim(self, key: str, version: int | None = None) -> Json:
        with self.shelf.lock:
            row = self._live(key)
            if row is None or version not in (None, row.version):
                return ABSENT
            del self.shelf.rows[self._place(key)]
        return loads(row.text)

    def take_expired(self, key: str, default: Any = None) -> Json:
        keys.check_key(key, self.kinds)
        with self.shelf.lock:
            row = self.shelf.rows.get(self._place(key))
            if row is None or row.lives(now()):
                return default
            del self.shelf.rows[self._place(key)]
        return loads(row.text)

    def list(self, prefix: str = "", *, after: str | None = None, limit: int | None = None) -> tuple[str, ...]:
        return tuple(key for key, _ in self._range(prefix, after, limit))

    def entries(self, prefix: str = "", *, after: str | None = None, limit: int | None = None) -> tuple[Entry, ...]:
        return tuple(
            Entry(
                key=key,
                value=loads(row.text),
                version=row.version,
                expires_at=row.expires_at,
                created_at=row.created_at,
            )
            for key, row in self._range(prefix, after, limit)
        )

    def _place(self, key: str) -> tuple[str, str, str]:
        return (self.workspace, self.workflow, key)

    def _live(self, key: str) -> _Row | None:
        keys.check_key(key, self.kinds)
        with self.shelf.lock:
            row = self.shelf.rows.get(self._place(key))
        return row if row and row.lives(now()) else None

    def _write(self, key: str, value: Json, ttl: Lifetime) -> _Row:
        keys.check_key(key, self.kinds)
        text, seconds, present = encode(key, value), seconds_of(ttl), now()
        old = self.shelf.rows.get(self._place(key))
        row = _Row(
            text=text,
            version=old.version + 1 if old else first_version(),
            expires_at=None if seconds is None else present + timedelta(seconds=seconds),
            created_at=old.created_at if old and old.lives(present) else present,
        )
        self.shelf.rows[self._place(key)] = row
        return row

    def _update(self, key: str, version: int, **changes: Any) -> bool:
        with self.shelf.lock:
            row = self._live(key)
            if row is None or row.version != version:
                return False
            self.shelf.rows[self._place(key)] = replace(row, version=version + 1, **changes)
        return True

    def _range(self, prefix: str, after: str | None, limit: int | None) -> tuple[tuple[str, _Row], ...]:
        self.check_range(prefix, after, limit)
        present, scope = now(), (self.workspace, self.workflow)
        with self.shelf.lock:
            mine = [
                (place[2], row) for place, row in self.shelf.rows.items() if place[:2] == scope and row.lives(present)
            ]
        hidden = keys.hidden_kinds(prefix, self.kinds)
        found = [
            (key, row)
            for key, row in sorted(mine, key=lambda pair: pair[0])
            if key.startswith(prefix) and not key.startswith(hidden) and (after is None or key > after)
        ]
        return tuple(found if limit is None else found[:limit])
