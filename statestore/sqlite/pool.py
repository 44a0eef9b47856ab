"""Closed connections of this process, kept open for the next request.

Under ASGI every request has a new thread and with it a new Django connection; opening a SQLite file costs more than
all that a request then does with it. A connection comes back only with no transaction and no half-read statement on it,
goes to one user at a time, never crosses a fork, and is dropped when its file is not the one at the path any more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from statestore.sqlite.turn import Connection

#: Idle connections kept for one database; each holds a page cache of up to 2 MB.
LIMIT = 8

Key = tuple[Any, ...]

_lock = threading.Lock()
_idle: dict[Key, list[Connection]] = {}
#: A child must neither use nor close its parent's connections; they stay here until it ends.
_inherited: list[Connection] = []


def key_for(params: Mapping[str, Any], extra: tuple[Any, ...]) -> Key | None:
    """What two connections must share to stand in for each other; None where nothing is kept (no plain file)."""
    path = os.path.abspath(params["database"])
    try:
        status = os.stat(path)
    except OSError:
        return None
    options = tuple(sorted((name, repr(option)) for name, option in params.items()))
    return (path, status.st_dev, status.st_ino, options, extra)


def take(key: Key) -> Connection | None:
    """An idle connection, or None."""
    stale: list[Connection] = []
    with _lock:
        for other in [other for other in _idle if other[0] == key[0] and other[:3] != key[:3]]:
            stale += _idle.pop(other)
        waiting = _idle.get(key)
        found = waiting.pop() if waiting else None
    for connection in stale:
        connection.close()
    return found


def keep(key: Key, connection: Connection) -> bool:
    """Take over a connection that its user is done with; False when it must be closed instead."""
    if connection.in_transaction:
        return False
    connection.close_cursors()
    with _lock:
        waiting = _idle.setdefault(key, [])
        if len(waiting) >= LIMIT:
            return False
        waiting.append(connection)
    return True


def drain() -> None:
    """Close every idle connection."""
    with _lock:
        waiting = [connection for connections in _idle.values() for connection in connections]
        _idle.clear()
    for connection in waiting:
        connection.close()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for connections in _idle.values():
        _inherited.extend(connections)
    _idle.clear()


os.register_at_fork(after_in_child=_after_fork)
