"""Housekeeping over all scopes: finding entries by key alone, and purging what has expired."""
# ruff: noqa: S608  (only constants and the clock's fragment are put together; data are parameters)

from __future__ import annotations

from dataclasses import dataclass

from django.db import DEFAULT_DB_ALIAS, connections

from statestore import keys
from statestore.clock import now_sql
from statestore.errors import ReservedKind
from statestore.faults import point
from statestore.store import TABLE

#: Entries that one purge deletes, in one short statement.
BATCH = 200


@dataclass(frozen=True, kw_only=True)
class Located:
    """Where a key lies; `expired` ones wait for `take_expired` or the purge."""

    workflow: str
    key: str
    expired: bool


def locate(
    workspace: str,
    kind: str,
    *,
    key: str | None = None,
    after: str | None = None,
    limit: int = 1000,
    using: str = DEFAULT_DB_ALIAS,
) -> tuple[Located, ...]:
    """Keys of one reserved kind in all workflows of a workspace, expired ones too; with `key`, only that one.

    For services that know a key and no workflow, and for cross-checks. `after` is the last key of the page before.
    """
    if kind not in keys.RESERVED_KINDS:
        raise ReservedKind(f"{kind!r} is not a reserved kind; an author's keys are read per workflow.", kind)
    if key is not None:
        keys.check_key(key, (kind,))
    connection = connections[using]
    now, at = now_sql(connection)
    bounds = (key, key) if key is not None else (kind, keys.range_end(kind))
    closed = "<=" if key is not None else "<"
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT workflow, "key", expires_at IS NOT NULL AND expires_at <= {now} FROM {TABLE} '
            f'WHERE workspace = %s AND "key" >= %s AND "key" {closed} %s AND "key" > %s '
            'ORDER BY "key", workflow LIMIT %s',
            (*at, workspace, *bounds, after or "", limit),
        )
        return tuple(
            Located(workflow=workflow, key=found, expired=bool(expired))
            for workflow, found, expired in cursor.fetchall()
        )


def purge_expired(limit: int = BATCH, *, using: str = DEFAULT_DB_ALIAS) -> int:
    """Delete at most `limit` expired entries of all scopes and say how many; call again while it says `limit`.

    Never an approval: what happens to one that nobody answered is for `take_expired` to decide.
    """
    connection = connections[using]
    now, at = now_sql(connection)
    due = (
        f'SELECT id FROM {TABLE} WHERE expires_at <= {now} AND NOT ("key" >= %s AND "key" < %s) '
        "ORDER BY expires_at LIMIT %s"
    )
    # On Postgres another purge works on other rows instead of waiting for these; and an array, because a plan may run a
    # subquery of IN once for each row, and then the limit limits nothing.
    on_postgres = connection.vendor == "postgresql"
    among = f"= ANY(ARRAY({due} FOR UPDATE SKIP LOCKED))" if on_postgres else f"IN ({due})"
    with connection.cursor() as cursor:
        cursor.execute(
            # The time is asked again outside: a put may have made the row live meanwhile.
            f"DELETE FROM {TABLE} WHERE id {among} AND expires_at <= {now}",
            (*at, keys.APPROVAL, keys.range_end(keys.APPROVAL), limit, *at),
        )
        deleted = int(cursor.rowcount)
    point("purge.deleted")
    return deleted
