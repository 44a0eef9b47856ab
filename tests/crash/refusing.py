"""A real error of the database in one statement: a trigger that refuses a row, on either database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, models
from django_tasks_db.models import DBTaskResult

from approvals.models import ApprovalRequest, AuditEntry, Notice
from statestore.models import StateRecord
from workflows.models import Run, RunEvent

WORDS = "the disk of this test is full"


@contextmanager
def refusing(model: type[models.Model], operation: str) -> Iterator[None]:
    """While the block runs, `operation` (INSERT, UPDATE or DELETE) on the model's table fails."""
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        for statement in _made(table, operation):
            cursor.execute(statement)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            for statement in _undone(table):
                cursor.execute(statement)


def _made(table: str, operation: str) -> tuple[str, ...]:
    if connection.vendor == "sqlite":
        return (f"CREATE TRIGGER refuse_it BEFORE {operation} ON {table} BEGIN SELECT RAISE(ABORT, '{WORDS}'); END",)
    return (
        "CREATE FUNCTION refuse_it() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{WORDS}' USING ERRCODE = 'disk_full'; END $$",
        f"CREATE TRIGGER refuse_it BEFORE {operation} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_it()",
    )


def _undone(table: str) -> tuple[str, ...]:
    if connection.vendor == "sqlite":
        return ("DROP TRIGGER refuse_it",)
    return (f"DROP TRIGGER refuse_it ON {table}", "DROP FUNCTION refuse_it()")


#: Whatever a decision may touch.
TABLES: tuple[type[models.Model], ...] = (StateRecord, ApprovalRequest, AuditEntry, Run, RunEvent, DBTaskResult, Notice)


def rows() -> dict[str, list[Any]]:
    """All of it, to compare before and after."""
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in TABLES}
