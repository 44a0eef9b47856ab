"""Give back the space of what was deleted: SQLite keeps it in its file until it is asked."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

from statestore.errors import NotCompacted
from statestore.sqlite.turn import Connection

#: Others cannot write while the file is made anew. They wait, as for any other writer; this is half their patience.
SECONDS = 10.0
_BETWEEN_TRIES = 0.02
#: Steps of SQLite's machine between two looks at the clock; a row takes a few, and may be large.
_STEPS = 100


@dataclass(frozen=True, kw_only=True)
class Compacted:
    """The size of the file with its journal, in bytes."""

    before: int
    after: int


def compact(seconds: float = SECONDS, *, using: str = DEFAULT_DB_ALIAS) -> Compacted | None:
    """Make the file as small as what is in it; None on another database than a SQLite file.

    Readers go on meanwhile and writers wait, for at most `seconds`: what takes longer is given up and changes nothing.
    For use outside a transaction. Raises NotCompacted, with what to do.
    """
    connection = connections[using]
    connection.ensure_connection()
    raw, path = connection.connection, str(connection.settings_dict["NAME"])
    if not isinstance(raw, Connection) or not os.path.isfile(path):
        return None
    usual = raw.patience
    before = _size(path)
    raw.close_cursors()
    try:
        raw.set_patience(seconds)
        with connection.wrap_database_errors:
            raw.in_turn(lambda: _make_anew(raw, seconds))
            _empty_the_journal(raw, seconds)
    except OperationalError as error:
        raise NotCompacted(_why(error, seconds)) from error
    finally:
        raw.set_patience(usual)
    return Compacted(before=before, after=_size(path))


def _make_anew(raw: Connection, seconds: float) -> None:
    with _limited(raw, seconds):
        raw.execute("VACUUM")


@contextmanager
def _limited(raw: Connection, seconds: float) -> Iterator[None]:
    """A statement inside is given up after so many seconds."""
    end = time.monotonic() + seconds
    raw.set_progress_handler(lambda: int(time.monotonic() > end), _STEPS)
    try:
        yield
    finally:
        raw.set_progress_handler(None, 0)


def _empty_the_journal(raw: Connection, seconds: float) -> None:
    """Bring the new pages into the file and cut it. A slow reader keeps nobody else waiting: it is asked again."""
    raw.execute("PRAGMA busy_timeout = 0")
    raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    end = time.monotonic() + seconds
    while raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > end:
            raise sqlite3.OperationalError("a reader does not end")
        time.sleep(_BETWEEN_TRIES)


def _size(path: str) -> int:
    return sum(os.path.getsize(part) for part in (path, f"{path}-wal") if os.path.exists(part))


def _why(error: OperationalError, seconds: float) -> str:
    reason = str(error)
    if "interrupted" in reason:
        return (
            f"The file was not made smaller: it takes more than {seconds:g} s, in which nobody else could write. Stop "
            "the servers and workers and allow more with --vacuum-seconds."
        )
    if "a reader" in reason:
        return (
            f"The file is not smaller yet: somebody has been reading for {seconds:g} s. Nothing is lost; run it again "
            "when the long reader (a backup, a shell) is done."
        )
    if "full" in reason:
        return f"The file was not made smaller ({reason}): that needs twice its size on the disk. Make room."
    return (
        f"The file was not made smaller: the database is busy ({reason}). Run it again when less is going on, or stop "
        "the servers and workers first."
    )
