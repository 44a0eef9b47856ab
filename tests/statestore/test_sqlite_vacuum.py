"""The file becomes as small as what is in it; others go on meanwhile, and whatever hinders it is named."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import pytest
from django.db import connection

from statestore.errors import NotCompacted
from statestore.models import StateRecord
from statestore.sqlite.vacuum import Compacted, compact
from statestore.store import StateStore
from tests.conftest import ROOT
from tests.counts import count
from tests.statestore.test_sqlite_turns import lock_held

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1024 * 1024
ROWS = count(400, 40_000)


def path() -> str:
    return str(connection.settings_dict["NAME"])


def grown() -> None:
    """The file after many rows, of 10 kB each, came and went; one stayed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) INSERT INTO "
            'statestore_staterecord (workspace, workflow, "key", value, version, created_at, updated_at) '
            "SELECT 'default', 'w', 'k' || i, '\"' || hex(zeroblob(5000)) || '\"', 1, '2026-01-01', '2026-01-01' "
            "FROM n",
            [ROWS],
        )
    StateRecord.objects.all().delete()
    StateStore("default", "w").put("stays", "here")


def test_the_file_is_smaller_and_holds_what_it_held() -> None:
    grown()
    made = compact()
    assert made is not None
    assert made.before > ROWS * 10_000
    assert made.after < made.before / 4
    assert made.after == os.path.getsize(path()), "the journal is empty"
    assert StateStore("default", "w").get("stays") == "here"
    assert connection.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    again = compact()
    assert again == Compacted(before=made.after, after=made.after)


def test_readers_and_writers_of_other_processes_wait_and_see_no_error(report: Callable[[str], None]) -> None:
    grown()
    command = [sys.executable, "-m", "tests.statestore.writing_process", path(), "1.5"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, f"key-{number}"], cwd=ROOT, **pipes) for number in range(2)]  # type: ignore[call-overload]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    made = [compact(), compact()]
    told = [writer.communicate(timeout=60) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], told
    assert made[0] is not None
    assert made[0].after < made[0].before / 4
    report(f"vacuum of {made[0].before / MIB:.0f} MiB beside two writers; what they said: {told}")


def test_a_writer_that_does_not_end_is_named() -> None:
    with lock_held(60), pytest.raises(NotCompacted, match=r"the database is busy .*less is going on"):
        compact(0.2)
    assert compact() is not None


def test_a_reader_that_does_not_end_keeps_the_space_and_is_named() -> None:
    grown()
    with closing(sqlite3.connect(path(), isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM statestore_staterecord").fetchone() == (1,)
        with pytest.raises(NotCompacted, match="somebody has been reading"):
            compact(0.3)
        StateStore("default", "w").put("meanwhile", 1)
        assert reader.execute("SELECT count(*) FROM statestore_staterecord").fetchone() == (1,)
    made = compact()
    assert made is not None
    assert made.after < ROWS * 10_000 / 4
    assert StateStore("default", "w").get("meanwhile") == 1


def test_what_takes_too_long_is_given_up_and_changes_nothing() -> None:
    for number in range(300):
        StateStore("default", "w").put(f"k{number}", "x" * 20_000)
    with pytest.raises(NotCompacted, match=r"takes more than 1e-06 s.*--vacuum-seconds"):
        compact(0.000001)
    assert StateStore("default", "w").get("k299") == "x" * 20_000
    StateStore("default", "w").put("after", 1)
    assert compact() is not None
