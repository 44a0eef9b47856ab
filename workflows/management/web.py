"""The web server of `serve`."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.utils.module_loading import import_string

from workflows.management.base import Stop

_BACKLOG = 2048
_MOST_GRACE = 10


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; Stop with a clear line when the address cannot be had. Port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise Stop(f"Cannot listen on {host}: {error.strerror}.") from error
    listener = socket.socket(family, kind, protocol)
    try:
        # A restarted server must not wait for its old connections; two that listen still refuse each other.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Stop(f"Cannot listen on {host}:{port}: it is in use. Stop what uses it, or give --port.") from error
        raise Stop(f"Cannot listen on {host}:{port}: {error.strerror}.") from error
    listener.setblocking(False)
    return listener


def address_of(listener: socket.socket, host: str) -> str:
    """Where a browser on this machine finds it."""
    # The addresses that mean all of this machine's cannot be called from everywhere.
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (shown, not listened on)
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


class WebServer(uvicorn.Server):
    """Uvicorn for our ASGI application; whoever runs it handles the signals and sets `should_exit`."""

    def __init__(self, drain_seconds: float) -> None:
        super().__init__(
            uvicorn.Config(
                application(),
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                # Only a proxy that the operator names may say who the client is.
                proxy_headers="FORWARDED_ALLOW_IPS" in os.environ,
                # Without a limit one open stream would keep the process for ever.
                timeout_graceful_shutdown=math.ceil(min(drain_seconds, _MOST_GRACE)),
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: uvicorn would raise them again at its end and kill the process with them."""
        yield


def application() -> Any:
    """The project's ASGI application."""
    name = getattr(settings, "ASGI_APPLICATION", None)
    return import_string(name) if name else get_asgi_application()
