"""A closed connection waits for the next request, and never carries anything over (design 4)."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction

from statestore.models import StateRecord
from statestore.sqlite import pool
from statestore.sqlite.base import DatabaseWrapper
from statestore.store import StateStore

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _empty_pool(transactional_db: None) -> None:
    connection.close()
    pool.drain()


def raw() -> Any:
    """The open connection under Django's."""
    connection.ensure_connection()
    return connection.connection


def in_thread(act: Callable[[], Any]) -> Any:
    """What `act` returns in a new thread, as a request under ASGI has it; its connection is closed after it."""
    answers: list[Any] = []

    def work() -> None:
        try:
            answers.append(act())
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    return answers[0]


def pragma(name: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {name}")
        return cursor.fetchone()[0]


def test_the_next_request_finds_the_connection_open() -> None:
    first = in_thread(raw)
    assert in_thread(raw) is first


def test_two_requests_at_once_have_two_connections() -> None:
    mine = raw()
    assert in_thread(raw) is not mine


def test_no_more_than_a_few_wait() -> None:
    wrappers = [connection.copy() for _ in range(pool.LIMIT + 3)]
    opened = []
    for wrapper in wrappers:
        wrapper.ensure_connection()
        opened.append(wrapper.connection)
    for wrapper in wrappers:
        wrapper.close()
    closed = 0
    for each in opened:
        try:
            each.execute("SELECT 1")
        except sqlite3.ProgrammingError:
            closed += 1
    assert closed == 3


def test_an_open_transaction_is_rolled_back_and_its_connection_dropped() -> None:
    def leave_open() -> Any:
        first = raw()
        with transaction.atomic():
            StateStore("default", "payer").put("k", 1)
            connections.close_all()
        return first

    first = in_thread(leave_open)
    assert in_thread(raw) is not first
    assert not StateRecord.objects.exists()


def test_a_connection_that_met_an_error_is_not_handed_on() -> None:
    def fail() -> Any:
        with pytest.raises(OperationalError):
            StateRecord.objects.raw("SELECT * FROM no_such_table")[0]
        return raw()

    first = in_thread(fail)
    assert in_thread(raw) is not first


def test_a_half_read_answer_does_not_show_the_next_request_the_past() -> None:
    store = StateStore("default", "payer")
    for number in range(500):
        store.put(f"k{number:03}", number)
    connection.close()
    left = []

    def leave_half_read() -> Any:
        cursor = connection.cursor()
        cursor.execute("SELECT * FROM statestore_staterecord")
        cursor.fetchone()
        left.append(cursor)
        return raw()

    first = in_thread(leave_half_read)
    raw()  # takes the one that waits, so that the write below has another
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("DELETE FROM statestore_staterecord")
    other.close()
    assert connection.connection is first
    assert not StateRecord.objects.exists()


def test_what_a_user_switched_off_is_on_again_for_the_next() -> None:
    def switch_off() -> Any:
        connection.disable_constraint_checking()
        return raw()

    first = in_thread(switch_off)
    assert in_thread(lambda: (raw() is first, pragma("foreign_keys"))) == (True, 1)


def test_a_file_that_was_replaced_gets_a_new_connection(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    wrapper = DatabaseWrapper({**connection.settings_dict, "NAME": str(path)}, alias="other")

    def tables() -> int:
        with wrapper.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM sqlite_master")
            return int(cursor.fetchone()[0])

    with wrapper.cursor() as cursor:
        cursor.execute("CREATE TABLE old (id integer)")
    wrapper.close()
    assert tables() == 1
    wrapper.close()
    for file in tmp_path.iterdir():
        file.unlink()
    assert tables() == 0
    wrapper.close()


def test_a_child_process_opens_its_own() -> None:
    connection.close()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"%d" % sum(len(waiting) for waiting in pool._idle.values()))
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"0"


def test_a_new_file_is_in_wal_before_anything_is_written(tmp_path: Path) -> None:
    wrapper = DatabaseWrapper({**connection.settings_dict, "NAME": str(tmp_path / "state.db")}, alias="other")
    with wrapper.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)
    wrapper.close()
    pool.drain()
    assert [file.name for file in tmp_path.iterdir()] == ["state.db"]
