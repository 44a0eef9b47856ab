"""A write transaction whose lock timeout is an error that a surface can answer with "busy, try again"."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, OperationalError, transaction

from statestore.errors import DatabaseBusy

#: Serialization failure, deadlock, lock not available, query cancelled by lock_timeout.
_POSTGRES_BUSY = {"40001", "40P01", "55P03"}


def is_locked(error: BaseException) -> bool:
    """Whether a database error only says that others held the lock; the same transaction may be tried again."""
    cause = error.__cause__ if isinstance(error, OperationalError) else error
    if isinstance(cause, sqlite3.OperationalError):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    return getattr(cause, "sqlstate", None) in _POSTGRES_BUSY


@contextmanager
def write_transaction(using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """`atomic`, with a lock timeout raised as DatabaseBusy. On SQLite it holds the write lock from its first line."""
    try:
        with transaction.atomic(using=using):
            yield
    except OperationalError as error:
        if is_locked(error):
            raise DatabaseBusy("The database is busy and nothing was written. Try again in a moment.") from error
        raise
