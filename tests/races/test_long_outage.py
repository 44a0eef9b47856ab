"""A database that was away for long: the pool of connections finds it again as soon as it is back."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg_pool
import pytest
from django.conf import settings
from django.db import connection

from kampong import environment
from tests.conftest import database_url
from tests.races.watching import end_connections

pytestmark = pytest.mark.only("postgres")
IDLE = 12

#: By then a pool that doubles its waits has tried at 0, 1, 3 and 7 seconds, and would try again at 15.
AWAY_SECONDS = 8.0


def _real_database() -> socket.socket:
    config = settings.DATABASES["default"]
    host, port = config["HOST"] or "127.0.0.1", int(config["PORT"] or 5432)
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    there = socket.socket(socket.AF_UNIX)
    there.connect(f"{host}/.s.PGSQL.{port}")
    return there


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Until either side hangs up; then the twin of this thread is woken. Nobody closes what another still reads."""
    with suppress(OSError):  # hung up: the relay of this connection is over
        while content := source.recv(65536):
            target.sendall(content)
    for end in (source, target):
        with suppress(OSError):  # hung up before us
            end.shutdown(socket.SHUT_RDWR)


def _join(client: socket.socket, server: socket.socket) -> None:
    with client, server:
        back = threading.Thread(target=_pump, args=(server, client), daemon=True)
        back.start()
        _pump(client, server)
        back.join()


@contextmanager
def _reachable(listener: socket.socket) -> Iterator[None]:
    """The database answers behind this socket."""

    def relay() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return  # the listener was closed: the test is over
            threading.Thread(target=_join, args=(client, _real_database()), daemon=True).start()

    listener.listen()
    thread = threading.Thread(target=relay, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        listener.close()


def _connects(pool: psycopg_pool.ConnectionPool[Any]) -> bool:
    try:
        with pool.connection(timeout=0.3) as connection:
            connection.execute("SELECT 1")
    except psycopg_pool.PoolTimeout:
        return False
    return True


def test_a_database_that_was_away_for_long_is_found_again_within_seconds(tmp_path: Path) -> None:
    config = settings.DATABASES["default"]
    ours = environment.database({"DATABASE_URL": "postgres://x@127.0.0.1/x"}, tmp_path, tmp_path)["OPTIONS"]["pool"]
    # Bound, so that nobody else takes the port, and deaf until it listens.
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    to = {"host": "127.0.0.1", "port": port, "dbname": "postgres", "user": config["USER"]}
    to |= {"password": config["PASSWORD"]} if config["PASSWORD"] else {}
    with psycopg_pool.ConnectionPool(kwargs=to, open=True, **ours) as pool:
        gone = time.monotonic()
        while time.monotonic() - gone < AWAY_SECONDS:
            assert not _connects(pool)
        listener.listen()
        with _reachable(listener):
            back = time.monotonic()
            while not _connects(pool):
                assert time.monotonic() - back < 6, "the pool still waits although the database is back"


@pytest.mark.django_db(transaction=True)
def test_many_idle_connections_that_a_restart_ended_hold_nobody_up() -> None:
    together = threading.Barrier(IDLE)

    def use() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        together.wait(60)
        connection.close()

    users = [threading.Thread(target=use) for _ in range(IDLE)]
    for user in users:
        user.start()
    for user in users:
        user.join(60)
    connection.close()
    assert end_connections(database_url()) >= IDLE
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert time.monotonic() - began < 10
