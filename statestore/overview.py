"""What lies in the store over all workflows of a workspace, a page at a time: for those who look after it."""
# ruff: noqa: S608  (only constants and the clock's fragment are put together; data are parameters)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import DEFAULT_DB_ALIAS, connections

from statestore import keys
from statestore.clock import now_sql, read_time
from statestore.errors import ReservedKind
from statestore.jsontext import Json, loads
from statestore.store import TABLE


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One entry and where it lies. `expired`: its time is over, and it is absent for everybody but the purge.

    `id` is the row's: whatever comes later under the same key, after this entry was taken away, has another.
    """

    id: int
    workflow: str
    key: str
    value: Json
    version: int
    expired: bool
    expires_at: datetime | None
    created_at: datetime


def kept(
    workspace: str,
    kind: str,
    *,
    workflow: str | None = None,
    after: tuple[str, str] | None = None,
    limit: int,
    using: str = DEFAULT_DB_ALIAS,
) -> tuple[Kept, ...]:
    """At most `limit` entries of one reserved kind in the order of key and workflow, expired ones too.

    `after` is key and workflow of the last one before. One index range is read, and no more of it than is answered,
    however much there is. Without `workflow` all of them count.
    """
    if kind not in keys.RESERVED_KINDS:
        raise ReservedKind(f"{kind!r} is not a reserved kind; an author's keys are read per workflow.", kind)
    conditions, values = ["workspace = %s"], [workspace]
    if workflow is not None:
        conditions.append("workflow = %s")
        values.append(workflow)
    conditions.append('"key" >= %s AND "key" < %s')
    values += [kind if after is None else max(kind, after[0]), str(keys.range_end(kind))]
    if after is not None:
        conditions.append('("key" > %s OR workflow > %s)')
        values += [max(kind, after[0]), after[1]]
    return _read(f'{" AND ".join(conditions)} ORDER BY "key", workflow LIMIT {int(limit)}', values, using)


def entry(workspace: str, row_id: int, *, using: str = DEFAULT_DB_ALIAS) -> Kept | None:
    """The entry with this id, whatever its kind; None when it was taken away, or no database has such an id."""
    if not 0 < row_id < 2**63:
        return None
    found = _read("workspace = %s AND id = %s", [workspace, row_id], using)
    return found[0] if found else None


def _read(where: str, values: Sequence[str | int], using: str) -> tuple[Kept, ...]:
    connection = connections[using]
    now, at = now_sql(connection)
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT id, workflow, "key", value, version, expires_at IS NOT NULL AND expires_at <= {now}, expires_at, '
            f"created_at FROM {TABLE} WHERE {where}",
            (*at, *values),
        )
        rows = cursor.fetchall()
    found = []
    for row_id, workflow, key, text, version, expired, expires_at, created_at in rows:
        created = read_time(connection, created_at)
        if created is None:
            raise AssertionError("created_at is not nullable")
        found.append(
            Kept(
                id=row_id,
                workflow=workflow,
                key=key,
                value=loads(text),
                version=version,
                expired=bool(expired),
                expires_at=read_time(connection, expires_at),
                created_at=created,
            )
        )
    return tuple(found)
