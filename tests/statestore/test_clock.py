"""One clock for every query, and one offset for every process of a test."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from pytest_django import Settings

from statestore.clock import DbNow, epoch_sql, now, now_sql, read_time
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.conftest import Clock, Processes


@pytest.mark.django_db
def test_a_query_can_filter_and_update_by_the_clock(clock: Clock) -> None:
    StateStore("default", "payer").put("k", 1, ttl=60)
    records = StateRecord.objects.all()
    assert not records.filter(expires_at__lte=DbNow()).exists()
    assert records.filter(expires_at__lte=DbNow(61)).exists()
    assert records.filter(expires_at__gt=DbNow(59)).exists()
    clock.advance(61)
    assert records.filter(expires_at__lte=DbNow()).exists()
    assert records.update(expires_at=DbNow(10), updated_at=DbNow()) == 1
    record = StateRecord.objects.get()
    assert record.expires_at is not None
    assert record.expires_at - record.updated_at == pytest.approx(timedelta(seconds=10), abs=timedelta(seconds=1))
    assert record.updated_at == pytest.approx(datetime.now(UTC) + timedelta(seconds=61), abs=timedelta(seconds=30))


@pytest.mark.django_db
def test_a_new_row_can_carry_the_clock() -> None:
    row = StateRecord.objects.create(workflow="w", key="k", value="1", created_at=DbNow(), updated_at=DbNow(-5))
    row.refresh_from_db()
    assert row.created_at - row.updated_at == pytest.approx(timedelta(seconds=5), abs=timedelta(seconds=1))


@pytest.mark.django_db
def test_raw_sql_and_python_tell_the_same_time(clock: Clock) -> None:
    clock.advance(-1000.5)
    fragment, values = now_sql(connection, 3)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {fragment}", values)
        raw = cursor.fetchone()[0]
    moment = read_time(connection, raw)
    assert moment is not None
    assert moment.tzinfo is UTC
    assert moment - now() == pytest.approx(timedelta(seconds=3), abs=timedelta(seconds=30))
    assert datetime.now(UTC) - now() == pytest.approx(timedelta(seconds=1000.5), abs=timedelta(seconds=30))


@pytest.mark.django_db
def test_microseconds_are_those_of_the_same_clock(clock: Clock) -> None:
    clock.advance(3600)
    sql, parameters = epoch_sql(connection, -60)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sql} + %s", (*parameters, 5))
        (micros,) = cursor.fetchone()
    assert isinstance(micros, int)
    assert abs(micros / 1_000_000 + 60 - now().timestamp()) < 30


def test_the_clock_cannot_be_moved_outside_tests(clock: Clock, settings: Settings) -> None:
    clock.advance(1000)
    settings.KAMPONG_TESTING = False
    assert abs(now() - datetime.now(UTC)) < timedelta(seconds=30)


def test_a_missing_clock_file_is_no_offset(settings: Settings) -> None:
    settings.KAMPONG_CLOCK_FILE = os.path.join(os.path.dirname(settings.KAMPONG_CLOCK_FILE), "none")
    assert abs(now() - datetime.now(UTC)) < timedelta(seconds=30)


READS = (
    "from statestore.store import StateStore; s = StateStore('default', 'payer');"
    "print(s.get('stays'), s.get('expired'), s.list()); s.put('answer', s.delete('stays'))"
)


@pytest.mark.django_db(transaction=True)
def test_another_process_sees_what_was_written_under_the_same_clock(manage: Processes, clock: Clock) -> None:
    store = StateStore("default", "payer")
    store.put("stays", {"n": 1})
    store.put("expired", 2, ttl=60)
    clock.advance(61)
    done = manage.run("shell", "-v", "0", "-c", READS)
    assert (done.returncode, done.stdout.strip()) == (0, "{'n': 1} None ('stays',)"), done.stderr
    assert store.get("answer") is True
    assert not store.exists("stays")
