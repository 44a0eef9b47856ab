"""Writers of a SQLite file take turns: nobody starves, nobody sees "database is locked" (scenario 56)."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from django.db import OperationalError, connection, connections, transaction
from django_tasks_db.utils import exclusive_transaction

from statestore.store import StateStore
from tests.conftest import ROOT
from tests.counts import count

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def lock_held(for_seconds: float) -> Iterator[None]:
    """Somebody else holds the write lock for that long, or until the block ends."""
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            taken.set()
            over.wait(for_seconds)
            other.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(30)
    try:
        yield
    finally:
        over.set()
        thread.join(30)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """A connection that gives up after that long."""
    connections["default"].close()
    options = connection.settings_dict["OPTIONS"]
    before = dict(options)
    options["timeout"] = seconds
    try:
        yield
    finally:
        connection.close()
        options.clear()
        options.update(before)


def enter_transaction() -> None:
    with transaction.atomic():
        pass


def enter_exclusive_transaction() -> None:
    with exclusive_transaction():
        pass


def write_alone() -> None:
    StateStore("default", "payer").put("k", 1)


@pytest.mark.parametrize("act", [enter_transaction, enter_exclusive_transaction, write_alone])
def test_a_writer_waits_for_its_turn(act: Callable[[], None]) -> None:
    begun = time.monotonic()
    with lock_held(0.3):
        act()
        waited = time.monotonic() - begun
    # SQLite's own timeout would look again after up to 100 ms; a turn comes within a few.
    assert 0.2 < waited < 15


@pytest.mark.parametrize("act", [enter_transaction, enter_exclusive_transaction, write_alone])
def test_a_writer_gives_up_after_its_patience_with_the_usual_error(act: Callable[[], None]) -> None:
    with patience(0.2), lock_held(60):
        begun = time.monotonic()
        with pytest.raises(OperationalError, match="database is locked"):
            act()
        assert 0.15 < time.monotonic() - begun < 20


def test_readers_do_not_wait_for_a_writer() -> None:
    store = StateStore("default", "payer")
    store.put("k", 1)
    with lock_held(60):
        begun = time.monotonic()
        assert store.get("k") == 1
        assert time.monotonic() - begun < 20


def test_whether_json_can_be_kept_is_asked_without_the_write_lock() -> None:
    """A server that starts while somebody copies the file would end, saying that SQLite knows no JSON."""
    with patience(0.2), lock_held(60):
        assert type(connection.features)(connection).supports_json_field


def test_the_busy_timeout_is_back_after_a_turn() -> None:
    write_alone()
    enter_transaction()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        assert cursor.fetchone() == (20000,)


def test_ten_processes_that_write_back_to_back_get_fair_shares(report: Callable[[str], None]) -> None:
    seconds = count(3, 10)
    command = [sys.executable, "-m", "tests.statestore.writing_process", connection.settings_dict["NAME"], str(seconds)]
    writers = [
        subprocess.Popen(
            [*command, str(number)], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None
        )
        for number in range(10)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    outcomes = []
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        out, _ = writer.communicate(timeout=90)
        assert writer.returncode == 0
        outcomes.append(json.loads(out))
    rounds = sorted(found for found, _ in outcomes)
    longest = max(longest for _, longest in outcomes)
    report(
        f"10 writers, {seconds} s, synchronous FULL: {rounds[0]} to {rounds[-1]} rounds each "
        f"(slowest/fastest {rounds[0] / rounds[-1]:.2f}), longest round {longest * 1000:.0f} ms, no errors"
    )
    assert rounds[0] * 3 >= rounds[-1]
