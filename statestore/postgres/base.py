"""Django's PostgreSQL backend: a connection of the pool is tried before it is handed out, and a dead one takes the
other dead ones with it.

The pool's own check tries one connection after the other and waits longer before each: after a restart of the server
six idle connections were enough to let every request time out.
"""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        pool: ConnectionPool[Any] | None = self.pool
        if pool is None:
            return connection
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.Error:
            pool.putconn(connection)
            pool.check()
            connection = super().get_new_connection(conn_params)
        return connection
