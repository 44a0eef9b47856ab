"""A SQLite file put in place of the one that is open, as when a backup is restored beside a running worker."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Processes
from tests.surfaces.serve.conftest import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("sqlite")]


def _signs_of_life(path: Path) -> int:
    with closing(sqlite3.connect(path, timeout=60)) as database:
        found: tuple[int] = database.execute("SELECT count(*) FROM workflows_workerbeat").fetchone()
    return found[0]


def _copy_without_signs_of_life(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source, timeout=60)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
        new.execute("DELETE FROM workflows_workerbeat")
        new.commit()


def test_a_worker_goes_on_in_the_file_that_took_the_place_of_its_own(
    manage: Processes, fresh_database: str, tmp_path: Path
) -> None:
    env = {"DATABASE_URL": fresh_database}
    assert manage.run("migrate", "-v0", env=env).returncode == 0
    present, restored = tmp_path / "fresh.db", tmp_path / "restored.db"
    manage.start("worker", env=env)
    until(lambda: _signs_of_life(present))
    _copy_without_signs_of_life(present, restored)
    for beside in ("-wal", "-shm"):
        present.with_name(present.name + beside).unlink(missing_ok=True)
    os.replace(restored, present)
    until(lambda: _signs_of_life(present))
