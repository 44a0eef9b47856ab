"""Slots for paced calls: the calls to one host are 1000/rps milliseconds apart, whoever makes them (14.7).

The next free slot is taken by one statement on the database, so all processes queue in the order of arrival; a second
one, when it has come, keeps late calls as far apart. A run without a database shares with the others of its process.
"""
# ruff: noqa: S608  (the parts put together here are constants of this module and the clock's fragment; data are parameters)

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol
from urllib.parse import urlsplit

from django.db import connection, transaction
from django.utils.crypto import salted_hmac

from statestore.clock import epoch_sql
from workflows.engine.effects import HttpCall
from workflows.engine.retrying import LONGEST_SECONDS
from workflows.waits import WORKER_WAITS_SECONDS

_TABLE: Final = "workflows_paceslot"
_MICROS: Final = 1_000_000
_PORTS: Final = {"http": 80, "https": 443}
_KEPT_SECONDS: Final = 24 * 3600


class Pacer(Protocol):
    """Hands out slots."""

    def take(self, target: str, interval: float) -> float:
        """Take the target's next free slot, `interval` seconds from the one before; in how many seconds it comes."""

    def enter(self, target: str, interval: float) -> float:
        """Asked when the slot has come: the seconds until the call before is `interval` seconds past.

        Slots that were missed (their workers were busy, or gone) come all at once; their calls must not. More than a
        worker waits: nothing is taken, ask again then.
        """


def target_of(call: HttpCall) -> str:
    """A mark of the call's host and port, or of its tool where the URL has no host.

    Keyed: a host can come from the environment, and no row holds such a value in clear (design 1).
    """
    return salted_hmac("kampong.pacing", _place(call), algorithm="sha256").hexdigest()


def interval_of(call: HttpCall) -> float:
    """Seconds between two slots; 0 for a call without pace."""
    return min(1 / call.pace["rps"], LONGEST_SECONDS) if call.pace is not None else 0.0


def _place(call: HttpCall) -> str:
    try:
        parts = urlsplit(call.url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host:
        return f"tool {call.tool}"
    return f"host {host.rstrip('.')}:{port or _PORTS.get(parts.scheme.lower(), 0)}"


class MemoryPacer:
    """Slots of this process alone. Thread safe."""

    def __init__(self, moment: Callable[[], float] = time.monotonic) -> None:
        self._moment = moment
        self._lock = threading.Lock()
        self._free: dict[str, float] = {}

    def take(self, target: str, interval: float) -> float:
        with self._lock:
            present = self._moment()
            slot = max(self._free.get(target, present), present)
            self._free[target] = slot + interval
            return slot - present

    def enter(self, target: str, interval: float) -> float:
        """Nobody is sent away here, so no slot is missed."""
        return 0.0


class DatabasePacer:
    """Slots of everybody who works on this database."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace

    def take(self, target: str, interval: float) -> float:
        return self._next("free_at", target, interval, at_most=None)

    def enter(self, target: str, interval: float) -> float:
        return self._next("open_at", target, interval, at_most=WORKER_WAITS_SECONDS)

    def _next(self, column: str, target: str, interval: float, at_most: float | None) -> float:
        """Move the column's time, or the present where that is past, on by the interval; how far ahead it stood.

        Nothing moves when that is more than `at_most` seconds.
        """
        apart = math.ceil(interval * _MICROS)
        # SQLite's clock is ours: it is read when the write lock is there, or those who waited for it would all take the
        # same past moment for the present.
        with transaction.atomic(), connection.cursor() as cursor:
            asked_at = time.monotonic()
            now, at = epoch_sql(connection)
            near, limit = (
                ("", ())
                if at_most is None
                else (f"WHERE {_TABLE}.{column} <= {now} + %s ", (*at, int(at_most * _MICROS)))
            )
            cursor.execute(
                f"INSERT INTO {_TABLE} (workspace, target, {column}) VALUES (%s, %s, {now} + %s) "
                f"ON CONFLICT (workspace, target) DO UPDATE SET {column} = %s + "
                f"CASE WHEN {_TABLE}.{column} > {now} THEN {_TABLE}.{column} ELSE {now} END "
                f"{near}RETURNING {column} - %s - {now}",
                (self._workspace, target, *at, apart, apart, *at, *at, *limit, apart, *at),
            )
            rows = cursor.fetchall()
            if not rows:
                where = f"SELECT {column} - {now} FROM {_TABLE} WHERE workspace = %s AND target = %s"
                cursor.execute(where, (*at, self._workspace, target))
                rows = cursor.fetchall()
        ahead: int = rows[0][0]
        return max(0.0, ahead / _MICROS - (time.monotonic() - asked_at))


#: The slots of runs in memory.
in_this_process = MemoryPacer()


def prune() -> int:
    """Forget targets whose last slot was taken a day ago: they are as free without a row."""
    now, at = epoch_sql(connection, -_KEPT_SECONDS)
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {_TABLE} WHERE free_at < {now} AND open_at < {now}", (*at, *at))
        return int(cursor.rowcount)
