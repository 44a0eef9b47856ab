"""The ASGI application: HTTP by Django. Websockets are closed politely until there is something to watch on them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

from channels.routing import ProtocolTypeRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

from kampong.prefix import Prefixed
from workflows.api.bodylimit import BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")


async def no_websocket(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Refuse the handshake, which a client sees as 403; an unrouted one would be an error in the log."""
    await receive()
    await send({"type": "websocket.close"})


application = Prefixed(
    ProtocolTypeRouter({"http": BodyLimit(get_asgi_application()), "websocket": no_websocket}),
    settings.FORCE_SCRIPT_NAME,
)
