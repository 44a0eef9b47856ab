"""Django's SQLite backend for many writing processes (design 4).

WAL, transactions that take the write lock when they begin, `synchronous` from KAMPONG_SQLITE_SYNCHRONOUS, foreign keys,
a busy timeout for stray statements, turns for writers (`turn.py`) and open connections for requests (`pool.py`).
"""

from __future__ import annotations

import sqlite3
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base, features
from django.utils.functional import cached_property

from statestore.conf import value
from statestore.sqlite import pool
from statestore.sqlite.creation import DatabaseCreation
from statestore.sqlite.turn import Connection, Cursor

TIMEOUT_SECONDS = 20
TRANSACTION_MODE = "IMMEDIATE"


class DatabaseFeatures(features.DatabaseFeatures):
    @cached_property
    def supports_json_field(self) -> bool:  # type: ignore[override]
        """Asked without a transaction: it needs the write lock, and while somebody has that Django takes it for no."""
        with self.connection.cursor() as cursor:
            try:
                cursor.execute("SELECT JSON('{}')")
            except OperationalError:
                return False
        return True


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
    features_class = DatabaseFeatures
    # Set by the parent's get_connection_params; written down because the stubs leave them out.
    transaction_mode: str | None
    init_commands: list[str]
    _key: pool.Key | None = None

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        if self.transaction_mode is None:
            self.transaction_mode = TRANSACTION_MODE
        params.setdefault("timeout", TIMEOUT_SECONDS)
        params["factory"] = Connection
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection:
        synchronous = value("KAMPONG_SQLITE_SYNCHRONOUS")
        extra = (synchronous, tuple(self.init_commands))
        key = self._pool_key(conn_params, extra)
        connection = pool.take(key) if key else None
        if connection is None:
            connection = self._open(conn_params, synchronous)
            # Opening may have made the file.
            key = self._pool_key(conn_params, extra)
        else:
            connection.execute("PRAGMA foreign_keys = ON")
        self._key = key
        return connection

    def create_cursor(self, name: str | None = None) -> Cursor:
        cursor: Cursor = self.connection.open_cursor()
        return cursor

    def _close(self) -> None:
        connection, key = self.connection, self._key
        # One that has met an error of the database is not handed on.
        if connection is None or key is None or self.errors_occurred or not pool.keep(key, connection):
            super()._close()  # type: ignore[misc]  # the stubs leave out private methods

    def _pool_key(self, params: dict[str, Any], extra: tuple[Any, ...]) -> pool.Key | None:
        return None if self.is_in_memory_db() else pool.key_for(params, extra)

    def _open(self, params: dict[str, Any], synchronous: str) -> Connection:
        connection: Connection = super().get_new_connection(params)
        try:
            if not self.is_in_memory_db():
                _use_wal(connection)
            connection.execute(f"PRAGMA synchronous = {synchronous}")
        except BaseException:
            connection.close()
            raise
        return connection


def _use_wal(connection: Connection) -> None:
    """Switch the file to WAL unless it is there already; the first processes of a new file do this at the same time."""
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return

    mode = connection.in_turn(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
    if mode != "wal":
        raise sqlite3.OperationalError(f"this file system keeps the journal mode at {mode}; WAL is needed")
