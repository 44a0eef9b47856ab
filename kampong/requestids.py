"""Gives each request an id: the one that `X-Request-ID` brings when it is sane, else a fresh one. The answer names it.

Around everything else: what refuses a request early says which one it was as well.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from workflows.bound import bound

HEADER = "X-Request-ID"
#: What no line of a log can be forged with, and no longer than ids are.
_SANE = re.compile(r"[A-Za-z0-9._:@+=/-]{1,128}")

App = Callable[..., Awaitable[None]]


def request_id(given: str) -> str:
    """What was given, when it is sane; otherwise a fresh id."""
    return given if _SANE.fullmatch(given) else uuid.uuid4().hex


class RequestIds:
    """An ASGI application in which the id is bound for the log, over HTTP and on websockets."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(HEADER.lower().encode(), b"")
        name = request_id(given.decode("latin-1"))

        async def answer(message: dict[str, Any]) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                headers = [*(message.get("headers") or ()), (HEADER.lower().encode(), name.encode())]
                message = {**message, "headers": headers}
            await send(message)

        with bound(request=name):
            await self.app(scope, receive, answer)


class RequestIdsWsgi:
    """The same for servers without streams."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self.app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        name = request_id(environ.get("HTTP_X_REQUEST_ID", ""))

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, (HEADER, name)], *rest)

        with bound(request=name):
            return self.app(environ, start)
