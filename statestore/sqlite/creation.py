"""Test databases are files: an in-memory one has no WAL and locks differently, so races on it prove nothing."""

from __future__ import annotations

from pathlib import Path

from django.db.backends.sqlite3 import creation

from statestore.sqlite import pool


class DatabaseCreation(creation.DatabaseCreation):
    def _get_test_db_name(self) -> str:
        config = self.connection.settings_dict
        if config["TEST"]["NAME"] or self.is_in_memory_db(config["NAME"]):
            given: str = super()._get_test_db_name()  # type: ignore[misc]  # the stubs leave out private methods
            return given
        path = Path(config["NAME"])
        return str(path.with_name(path.name if path.name.startswith("test_") else f"test_{path.name}"))

    def _create_test_db(self, verbosity: int, autoclobber: bool, keepdb: bool = False) -> str:
        name: str = super()._create_test_db(verbosity, autoclobber, keepdb)  # type: ignore[misc]  # the same
        if not keepdb and not self.is_in_memory_db(name):
            _remove_companions(name)
        return name

    def _clone_test_db(self, suffix: str, verbosity: int, keepdb: bool = False) -> None:
        # The clone is a copy of the file: what is still in the write-ahead log must be in it.
        with self.connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        super()._clone_test_db(suffix, verbosity, keepdb)  # type: ignore[misc]  # the same

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        pool.drain()
        super()._destroy_test_db(test_database_name, verbosity)  # type: ignore[misc]  # the same
        if test_database_name and not self.is_in_memory_db(test_database_name):
            _remove_companions(test_database_name)


def _remove_companions(name: str) -> None:
    for ending in ("-wal", "-shm"):
        Path(name + ending).unlink(missing_ok=True)
