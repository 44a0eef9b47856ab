"""Where connections are pooled, nobody keeps one while there is nothing to ask."""

from __future__ import annotations

from django.db import connection


def give_connection_back() -> None:
    """Let others have this thread's connection until it asks again; not inside a transaction, and only with a pool."""
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()
