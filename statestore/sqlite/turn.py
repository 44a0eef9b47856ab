"""Writers take turns: a connection and a cursor that ask for SQLite's write lock fairly.

SQLite's own busy timeout backs off up to 100 ms a try, so that a process that writes back to back starves the others
for seconds. Here a statement that takes the lock finds it free or comes back after 0.2 to 2 ms, at random.
"""

from __future__ import annotations

import functools
import random
import re
import sqlite3
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from django.db.backends.sqlite3.base import FORMAT_QMARK_REGEX, SQLiteCursorWrapper

SHORTEST, LONGEST = 0.0002, 0.002
#: Outside a transaction these take the write lock: the two BEGINs, and a write that is a transaction of its own.
_TAKES_THE_LOCK = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE|BEGIN\s+(?:IMMEDIATE|EXCLUSIVE))\b", re.IGNORECASE)

Answer = TypeVar("Answer")


class Connection(sqlite3.Connection):
    """A connection that knows how long it may wait for the lock, and which cursors are open on it."""

    def __init__(self, database: Any, timeout: float = 5.0, **options: Any) -> None:
        super().__init__(database, timeout=timeout, **options)
        self.patience = timeout
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()

    def set_patience(self, seconds: float) -> None:
        """Wait so long for the lock from here on, in turns and in stray statements."""
        self.patience = seconds
        self._set_busy_timeout(seconds)

    def open_cursor(self) -> Cursor:
        """A cursor whose statements wait their turn."""
        cursor = self.cursor(factory=Cursor)
        self._cursors.add(cursor)
        return cursor

    def close_cursors(self) -> None:
        """End every unfinished statement; one that is left half read pins an old snapshot of the database."""
        for cursor in tuple(self._cursors):
            cursor.close()
        self._cursors.clear()

    def in_turn(self, act: Callable[[], Answer]) -> Answer:
        """Do `act` when the lock is free; after `patience` seconds the usual "database is locked" is raised."""
        self._set_busy_timeout(0)
        try:
            deadline = time.monotonic() + self.patience
            while True:
                try:
                    return act()
                except sqlite3.OperationalError as error:
                    # Extended codes keep the kind in the low byte.
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                        raise
                time.sleep(random.uniform(SHORTEST, LONGEST))  # noqa: S311  (a delay is no secret)
        finally:
            self._set_busy_timeout(self.patience)

    def _set_busy_timeout(self, seconds: float) -> None:
        self.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


@functools.lru_cache(maxsize=1000)
def _converted(query: str) -> str:
    """Django's `%s` as SQLite's `?`; remembered, since finding them costs as much as a small read."""
    return str(FORMAT_QMARK_REGEX.sub("?", query)).replace("%%", "%")


class Cursor(SQLiteCursorWrapper):
    """Django's cursor; a statement that takes the write lock goes through `in_turn`."""

    def execute(self, query: str, params: Any = None) -> Any:
        connection = self.connection
        if connection.in_transaction or not isinstance(connection, Connection) or not _TAKES_THE_LOCK.match(query):
            return super().execute(query, params)
        begin = super().execute
        return connection.in_turn(lambda: begin(query, params))

    def convert_query(self, query: str, *, param_names: Any = None) -> Any:
        return _converted(query) if param_names is None else super().convert_query(query, param_names=param_names)
