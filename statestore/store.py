"""The store in the database: every operation is one statement, and its row count is the answer (design 4)."""
# ruff: noqa: S608  (the parts put together here are constants of this module and the clock's fragment; data are parameters)

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from statestore import keys
from statestore.clock import now_sql, read_time
from statestore.entries import ABSENT, Entry, Lifetime, Versioned, Written
from statestore.jsontext import Json, loads
from statestore.scope import Scoped, encode, first_version, seconds_of

TABLE = "statestore_staterecord"
_SCOPE = "workspace = %s AND workflow = %s"
_ONE = f'{_SCOPE} AND "key" = %s'


class StateStore(Scoped):
    """The `Store` of one workflow in one workspace, kept in the table of `StateRecord`.

    Inside `atomic` its writes belong to that transaction; outside each is one of its own.
    """

    def __init__(
        self, workspace: str, workflow: str, *, kinds: tuple[str, ...] = (), using: str = DEFAULT_DB_ALIAS
    ) -> None:
        super().__init__(workspace, workflow, kinds=kinds)
        self.using = using

    def get(self, key: str, default: Any = None) -> Json:
        row = self._live(key, "value")
        return loads(row[0]) if row else default

    def versioned(self, key: str) -> Versioned | None:
        row = self._live(key, "value, version, expires_at")
        if row is None:
            return None
        return Versioned(value=loads(row[0]), version=row[1], expires_at=read_time(connections[self.using], row[2]))

    def several(self, names: Iterable[str]) -> dict[str, Versioned]:
        wanted = list(names)
        for key in wanted:
            keys.check_key(key, self.kinds)
        if not wanted:
            return {}
        connection = connections[self.using]
        live, at = _live(connection)
        among = f'"key" IN ({", ".join(["%s"] * len(wanted))})'
        with connection.cursor() as cursor:
            cursor.execute(
                f'SELECT "key", value, version, expires_at FROM {TABLE} WHERE {_SCOPE} AND {among} AND {live}',
                (self.workspace, self.workflow, *wanted, *at),
            )
            return {
                key: Versioned(value=loads(text), version=version, expires_at=read_time(connection, expires_at))
                for key, text, version, expires_at in cursor.fetchall()
            }

    def exists(self, key: str) -> bool:
        return self._live(key, "1") is not None

    def put(self, key: str, value: Json, ttl: Lifetime = None) -> Written:
        row = self._insert(key, value, ttl, "")
        if row is None:
            raise AssertionError("an insert that overwrites always returns its row")
        return Written(version=row[0], expires_at=read_time(connections[self.using], row[1]))

    def put_if_absent(self, key: str, value: Json, ttl: Lifetime = None) -> bool:
        return self._insert(key, value, ttl, f" WHERE {TABLE}.expires_at <= excluded.created_at") is not None

    def replace(self, key: str, version: int, value: Json) -> bool:
        keys.check_key(key, self.kinds)
        return self._update(key, version, "value = %s, ", (encode(key, value),))

    def renew(self, key: str, version: int, ttl: Lifetime) -> bool:
        keys.check_key(key, self.kinds)
        seconds = seconds_of(ttl)
        until, at = ("NULL", ()) if seconds is None else now_sql(connections[self.using], seconds)
        return self._update(key, version, f"expires_at = {until}, ", at)

    def bump(self, key: str, version: int) -> bool:
        keys.check_key(key, self.kinds)
        return self._update(key, version, "", ())

    def delete(self, key: str, version: int | None = None) -> bool:
        return self._take(key, version) is not None

    def claim(self, key: str, version: int | None = None) -> Json:
        row = self._take(key, version)
        return loads(row[0]) if row else ABSENT

    def take_expired(self, key: str, default: Any = None) -> Json:
        keys.check_key(key, self.kinds)
        connection = connections[self.using]
        now, at = now_sql(connection)
        row = _first(
            connection,
            f"DELETE FROM {TABLE} WHERE {_ONE} AND expires_at <= {now} RETURNING value",
            (self.workspace, self.workflow, key, *at),
        )
        return loads(row[0]) if row else default

    def list(self, prefix: str = "", *, after: str | None = None, limit: int | None = None) -> tuple[str, ...]:
        return tuple(row[0] for row in self._range(prefix, after, limit, '"key"'))

    def entries(self, prefix: str = "", *, after: str | None = None, limit: int | None = None) -> tuple[Entry, ...]:
        connection = connections[self.using]
        entries = []
        for key, text, version, expires_at, created_at in self._range(
            prefix, after, limit, '"key", value, version, expires_at, created_at'
        ):
            created = read_time(connection, created_at)
            if created is None:
                raise AssertionError("created_at is not nullable")
            entries.append(
                Entry(
                    key=key,
                    value=loads(text),
                    version=version,
                    expires_at=read_time(connection, expires_at),
                    created_at=created,
                )
            )
        return tuple(entries)

    def _live(self, key: str, columns: str) -> Sequence[Any] | None:
        keys.check_key(key, self.kinds)
        connection = connections[self.using]
        live, at = _live(connection)
        sql = f"SELECT {columns} FROM {TABLE} WHERE {_ONE} AND {live}"
        return _first(connection, sql, (self.workspace, self.workflow, key, *at))

    def _insert(self, key: str, value: Json, ttl: Lifetime, condition: str) -> Sequence[Any] | None:
        """Insert, or overwrite the row that is there if it meets the condition; the new version and expiry."""
        keys.check_key(key, self.kinds)
        text, seconds = encode(key, value), seconds_of(ttl)
        connection = connections[self.using]
        now, at = now_sql(connection)
        until, until_at = ("NULL", ()) if seconds is None else now_sql(connection, seconds)
        return _first(
            connection,
            f'INSERT INTO {TABLE} (workspace, workflow, "key", value, version, expires_at, created_at, updated_at) '
            f"VALUES (%s, %s, %s, %s, %s, {until}, {now}, {now}) "
            f'ON CONFLICT (workspace, workflow, "key") DO UPDATE SET value = excluded.value, '
            f"version = {TABLE}.version + 1, expires_at = excluded.expires_at, updated_at = excluded.updated_at, "
            # What replaces an expired entry is a new entry.
            f"created_at = CASE WHEN {TABLE}.expires_at <= excluded.created_at THEN excluded.created_at "
            f"ELSE {TABLE}.created_at END{condition} RETURNING version, expires_at",
            (self.workspace, self.workflow, key, text, first_version(), *until_at, *at, *at),
        )

    def _update(self, key: str, version: int, changes: str, values: tuple[Any, ...]) -> bool:
        connection = connections[self.using]
        live, at = _live(connection)
        now, now_at = now_sql(connection)
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {TABLE} SET {changes}version = version + 1, updated_at = {now} "
                f"WHERE {_ONE} AND version = %s AND {live}",
                (*values, *now_at, self.workspace, self.workflow, key, version, *at),
            )
            return bool(cursor.rowcount == 1)

    def _take(self, key: str, version: int | None) -> Sequence[Any] | None:
        """The one delete behind `delete` and `claim`; its row is the claim."""
        keys.check_key(key, self.kinds)
        connection = connections[self.using]
        live, at = _live(connection)
        same, versions = ("", ()) if version is None else ("AND version = %s ", (version,))
        return _first(
            connection,
            f"DELETE FROM {TABLE} WHERE {_ONE} {same}AND {live} RETURNING value",
            (self.workspace, self.workflow, key, *versions, *at),
        )

    def _range(self, prefix: str, after: str | None, limit: int | None, columns: str) -> Sequence[Sequence[Any]]:
        """Rows of a key range; never LIKE, which scans on SQLite."""
        self.check_range(prefix, after, limit)
        connection = connections[self.using]
        live, at = _live(connection)
        conditions, values = [f'{_SCOPE} AND {live} AND "key" >= %s'], [self.workspace, self.workflow, *at, prefix]
        if (end := keys.range_end(prefix)) is not None:
            conditions.append('"key" < %s')
            values.append(end)
        if after is not None:
            conditions.append('"key" > %s')
            values.append(after)
        for kind in keys.hidden_kinds(prefix, self.kinds):
            conditions.append('NOT ("key" >= %s AND "key" < %s)')
            values += [kind, keys.range_end(kind)]
        sql = f'SELECT {columns} FROM {TABLE} WHERE {" AND ".join(conditions)} ORDER BY "key"'
        if limit is not None:
            sql += " LIMIT %s"
            values.append(limit)
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            rows: Sequence[Sequence[Any]] = cursor.fetchall()
        return rows


def _first(connection: BaseDatabaseWrapper, sql: str, values: Sequence[Any]) -> Sequence[Any] | None:
    """The first row of a statement, which is then over."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        # All rows: on SQLite a write of its own is committed when its last row has been read.
        rows: list[Sequence[Any]] = cursor.fetchall()
    return rows[0] if rows else None


def _live(connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
    now, at = now_sql(connection)
    return f"(expires_at IS NULL OR expires_at > {now})", at
