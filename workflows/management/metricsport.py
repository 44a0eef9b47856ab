"""The port on which a process that stays tells what it has counted (`KAMPONG_METRICS_PORT`)."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import start_http_server

from statestore.conf import value as setting
from workflows.api.exposition import Counted, registry_of
from workflows.management.base import Stop


@contextmanager
def metrics_port() -> Iterator[None]:
    """Open while the block runs, where the setting names a port; Stop with a clear line when it cannot be had.

    It asks nobody who they are, and answers from memory: numbers of this process alone.
    """
    host, port = setting("KAMPONG_METRICS_HOST"), setting("KAMPONG_METRICS_PORT")
    if not port:
        yield
        return
    try:
        server, thread = start_http_server(port, host, registry_of(Counted()))
    except OSError as error:
        why = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror
        move = "Give each process of this machine a KAMPONG_METRICS_PORT of its own, or 0 for none"
        raise Stop(f"Cannot tell metrics at {host}:{port}: {why}. {move}.") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
