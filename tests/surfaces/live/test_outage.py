"""The socket and the database: how many connections it takes, and what it tells when the database was away."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from approvals.live.watching import tailer
from tests.conftest import People, database_url
from tests.counts import count
from tests.races.watching import end_connections
from tests.surfaces.api.conftest import until
from tests.surfaces.live.conftest import cookie_of, refused, socket
from tests.workbench import to_pause
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)


def _open_connections() -> int:
    gc.collect()
    found = [one for one in gc.get_objects() if isinstance(one, BaseDatabaseWrapper)]
    return sum(one.connection is not None for one in found)


def test_connects_and_watchers_take_no_more_connections(server: str, people: People) -> None:
    cookie = cookie_of(people.approver)
    with socket(server, headers=cookie, origin=server) as first:
        first.next()
        before = _open_connections()
        opened = []
        for turn in range(count(60, 500)):
            connecting = socket(server, headers=cookie, origin=server)
            connecting.__enter__().next()
            if turn % 5 == 0:
                opened.append(connecting)
            else:
                connecting.__exit__(None, None, None)
        try:
            until(lambda: tailer.watchers == len(opened) + 1)
            assert _open_connections() <= before + 1
        finally:
            for connecting in opened:
                connecting.__exit__(None, None, None)
    until(lambda: tailer.watchers == 0 and not tailer.running)


@contextmanager
def _no_permissions_to_read() -> Iterator[None]:
    """The database refuses every question about who may do what."""
    table, away = "auth_user_user_permissions", "away"
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {away}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {away} RENAME TO {table}")


def test_after_an_outage_the_whole_difference_is_told_once(
    server: str, people: People, clerk: SpecFile, caplog: pytest.LogCaptureFixture
) -> None:
    _, first = to_pause(clerk)
    with socket(server, headers=cookie_of(people.approver), origin=server) as opened:
        assert [line["key"] for line in opened.next()["approvals"]] == [first]
        with _no_permissions_to_read():
            (_, second), (_, third) = to_pause(clerk), to_pause(clerk)
            until(lambda: caplog.text.count("cannot read the queue") > 1)
        told = opened.next()
        assert [line["key"] for line in told["opened"]] == [second, third]
        assert (told["number"], told["waiting"]) == (1, 3)


def test_whoever_connects_while_the_database_is_away_may_come_again(server: str, people: People) -> None:
    cookie = cookie_of(people.approver)
    with _no_permissions_to_read():
        assert refused(server, headers=cookie, origin=server) == 403
    with socket(server, headers=cookie, origin=server) as opened:
        assert opened.next()["number"] == 0


@pytest.mark.only("postgres")
def test_after_a_restart_of_the_database_it_goes_on(server: str, people: People, clerk: SpecFile) -> None:
    with socket(server, headers=cookie_of(people.approver), origin=server) as opened:
        opened.next()
        assert end_connections(database_url()) > 0
        _, key = to_pause(clerk)
        told = opened.next()
        assert ([line["key"] for line in told["opened"]], told["number"]) == ([key], 1)
