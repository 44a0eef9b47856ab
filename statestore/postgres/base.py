"""Django's PostgreSQL backend: a connection of the pool is tried before it is handed out, and a dead one takes the
other dead ones with it.

The pool's own check tries one connection after the other and waits longer before each: after a restart of the server
six idle connections were enough to let every request time out.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        pool: Any = self.pool
        if pool is None:
            return connection
        try:
            pool.check_connection(connection)
        except self.Database.Error:
            pool.putconn(connection)
            pool.check()
            connection = super().get_new_connection(conn_params)
        return connection

    def _close(self) -> None:
        # What a command opened for itself knows no pool, whatever the settings say by the time it is closed.
        if self.connection is not None and getattr(self.connection, "_pool", None) is None:
            self.connection.close()
        else:
            super()._close()  # type: ignore[misc]  # the stubs leave out private methods
