"""The one clock of every query: the statement's time on Postgres, our clock on SQLite, plus the offset of a test.

The offset exists only under KAMPONG_TESTING. It is read from the file KAMPONG_CLOCK_FILE at each call, so that all
processes of a test share one clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, Expression
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from statestore.conf import value


def now() -> datetime:
    """The present, aware and in UTC. For display, and for comparing in Python what a query will check again."""
    return datetime.now(UTC) + timedelta(seconds=test_offset())


def now_sql(connection: BaseDatabaseWrapper, seconds: float = 0) -> tuple[str, tuple[Any, ...]]:
    """The present plus `seconds` as a fragment of raw SQL and its parameters."""
    if connection.vendor == "postgresql":
        shift = seconds + test_offset()
        if not shift:
            return "statement_timestamp()", ()
        return "(statement_timestamp() + make_interval(secs => %s))", (float(shift),)
    moment = datetime.now(UTC)
    if shift := seconds + test_offset():
        moment += timedelta(seconds=shift)
    if connection.timezone_name == "UTC":
        # What the backend would make of it, without finding that out each time.
        return "%s", (str(moment.replace(tzinfo=None)),)
    return "%s", (connection.ops.adapt_datetimefield_value(moment),)


def epoch_sql(connection: BaseDatabaseWrapper, seconds: float = 0) -> tuple[str, tuple[Any, ...]]:
    """The same as whole microseconds since 1970, for reckoning with times inside a statement on both databases."""
    if connection.vendor == "postgresql":
        moment, parameters = now_sql(connection, seconds)
        return f"(extract(epoch FROM {moment}) * 1000000)::bigint", parameters
    return "%s", (int((now().timestamp() + seconds) * 1_000_000),)


def db_now(using: str = DEFAULT_DB_ALIAS) -> datetime:
    """The present as the next statement's filters will see it, aware and in UTC: the database's own on Postgres."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        return now()
    fragment, parameters = now_sql(connection)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {fragment}", parameters)
        (moment,) = cursor.fetchone()
    return moment.astimezone(UTC)  # type: ignore[no-any-return]


class DbNow(Expression):
    """The present plus `seconds`, for `filter()`, `update()` and new rows."""

    def __init__(self, seconds: float = 0) -> None:
        super().__init__(output_field=DateTimeField())
        self.seconds = seconds

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        return now_sql(connection, self.seconds)


def read_time(connection: BaseDatabaseWrapper, raw: datetime | str | None) -> datetime | None:
    """A time column as a raw cursor gives it (SQLite: text, or naive) as an aware datetime in UTC."""
    if raw is None:
        return None
    moment = parse_datetime(raw) if isinstance(raw, str) else raw
    if moment is None:
        raise ValueError(f"{raw!r} is not a time as this database stores it")
    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment, connection.timezone)
    return moment.astimezone(UTC)


def test_offset() -> float:
    """Seconds by which the running test has moved the clock; always 0 outside tests."""
    if not value("KAMPONG_TESTING"):
        return 0.0
    path = value("KAMPONG_CLOCK_FILE")
    if not path:
        return 0.0
    try:
        with open(path, encoding="ascii") as file:
            return float(file.read().strip() or 0)
    except FileNotFoundError:
        return 0.0
