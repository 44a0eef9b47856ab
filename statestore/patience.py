"""Less patience with locks, for a caller who has to answer within seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError, InterfaceError, connection

from statestore.sqlite.turn import Connection


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Inside, a statement of this thread that waits longer than this for a lock fails with OperationalError.

    For use outside a transaction. A statement that waits for nobody may take as long as it takes.
    """
    connection.ensure_connection()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{int(seconds * 1000)}ms"])
        try:
            yield
        finally:
            # A connection that is broken by now keeps nothing, and is not handed on.
            with suppress(DatabaseError, InterfaceError), connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")
        return
    raw = connection.connection
    if not isinstance(raw, Connection):
        yield
        return
    usual = raw.patience
    raw.set_patience(seconds)
    try:
        yield
    finally:
        raw.set_patience(usual)
