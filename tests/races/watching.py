"""Watches the database from outside while others work: how old did a transaction get, how long was the lock held."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
from django.db import connection

EVERY = 0.05
_OLDEST = """
    SELECT extract(epoch FROM clock_timestamp() - xact_start), pid || ' ' || state || ': ' || query
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    ORDER BY xact_start LIMIT 1
"""


class Watch:
    """`longest` is the age of the oldest transaction that was seen, in seconds; `who` had it open."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.who = ""
        self.looks = 0
        self._over = threading.Event()

    def see(self, seconds: float, who: str = "") -> None:
        if seconds > self.longest:
            self.longest, self.who = seconds, who
        self.looks += 1

    def end(self) -> None:
        self._over.set()

    def on_postgres(self, url: str) -> None:
        """The age of every transaction that is open when we look."""
        with psycopg.connect(url, autocommit=True) as session:
            while not self._over.wait(EVERY):
                row = session.execute(_OLDEST).fetchone()
                if row is None or row[0] is None:
                    self.see(0.0)
                else:
                    self.see(float(row[0]), str(row[1]))

    def on_sqlite(self, path: str) -> None:
        """How long we wait for the lock that every writing transaction holds."""
        with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as session:
            while not self._over.wait(EVERY):
                begun = time.monotonic()
                session.execute("BEGIN IMMEDIATE")
                session.execute("ROLLBACK")
                self.see(time.monotonic() - begun)


@contextmanager
def watching(database_url: str) -> Iterator[Watch]:
    """Look while the block runs."""
    watch = Watch()
    if connection.vendor == "sqlite":
        thread = threading.Thread(target=watch.on_sqlite, args=(database_url.removeprefix("sqlite:///"),))
    else:
        thread = threading.Thread(target=watch.on_postgres, args=(database_url,))
    thread.start()
    try:
        yield watch
    finally:
        watch.end()
        thread.join(60)


def end_connections(database_url: str) -> int:
    """What a restart of Postgres does: every connection of this database ends. This process closes its own first."""
    connection.close()
    with psycopg.connect(database_url, autocommit=True) as session:
        gone = session.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    assert gone is not None
    return int(gone[0])


def connections_of(database_url: str) -> int:
    """How many connections to this database are open, ours of this moment left out."""
    with psycopg.connect(database_url, autocommit=True) as session:
        row = session.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        ).fetchone()
    assert row is not None
    return int(row[0])
