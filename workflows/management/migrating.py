"""Bring the database up to date when a server starts, one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from workflows.management.base import Stop
from workflows.management.terminal import to_type

# Any number that no other program locks in this database.
_ADVISORY_LOCK = 0x6B616D70


def migrate() -> None:
    """Apply what is missing. Servers that start at the same moment on a new database wait for each other."""
    with _alone():
        call_command("migrate", interactive=False, verbosity=0, skip_checks=True)


def require_migrated() -> None:
    """Stop with the next move when something is missing."""
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in missing[:3])
        raise Stop(f"The database is not migrated ({len(missing)} missing: {names}). Run: {to_type('migrate')}")


@contextmanager
def _alone() -> Iterator[None]:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [_ADVISORY_LOCK])
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_ADVISORY_LOCK])
    elif connection.vendor == "sqlite" and ":memory:" not in str(connection.settings_dict["NAME"]):
        # A file beside the database: locking the database's own would end SQLite's locks when it is closed.
        handle = os.open(f"{connection.settings_dict['NAME']}-migrating", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
    else:
        yield
