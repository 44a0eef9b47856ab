"""The ASGI application: HTTP by Django, and what can be watched on websockets."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")

http = get_asgi_application()  # before all that needs the apps to be loaded

from approvals.live.consumer import ApprovalsConsumer  # noqa: E402
from kampong.prefix import Prefixed  # noqa: E402
from kampong.requestids import RequestIds  # noqa: E402
from workflows.api.bodylimit import BodyLimit  # noqa: E402


async def no_websocket(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Refuse the handshake, which a client sees as 403; an unrouted one would be an error in the log."""
    await receive()
    await send({"type": "websocket.close"})


_sockets: dict[str, Any] = {r"^ws/approvals/?$": ApprovalsConsumer.as_asgi(), "": no_websocket}
sockets = URLRouter([re_path(pattern, app) for pattern, app in _sockets.items()])
application = RequestIds(
    Prefixed(ProtocolTypeRouter({"http": BodyLimit(http), "websocket": sockets}), settings.FORCE_SCRIPT_NAME)
)
