"""Stops reading a request's body at the limit, before Django puts it on the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

LIMIT = 1024 * 1024
#: The mark in the scope of a body that was not handed on.
OVER_LIMIT = "kampong.body_over_limit"

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[..., Awaitable[None]]

#: What a client still gets to send, into nothing, so that it reads our answer instead of a broken connection.
DISCARDED = 64 * 1024 * 1024


class BodyLimit:
    """An ASGI application that hands on bodies up to the limit, and an empty one with a mark in the scope above it.

    The view then refuses in its own order: who asks comes before what was sent.
    """

    def __init__(self, app: App, limit: int = LIMIT) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        content = await self._read(scope, receive)
        if isinstance(content, dict):
            first = content
        else:
            first = {"type": "http.request", "body": content or b"", "more_body": False}
        if content is None:
            scope = {**scope, OVER_LIMIT: True}
        unsent = content is None and b"expect" in dict(scope["headers"])
        waiting = [first]

        async def rest() -> Message:
            if waiting:
                return waiting.pop()
            if unsent:
                # Asking the server for more would tell the client to go on; Django ends this wait with its answer.
                await asyncio.Event().wait()
            return await receive()

        await self.app(scope, rest, send)

    async def _read(self, scope: dict[str, Any], receive: Receive) -> bytes | Message | None:
        """The body; the disconnect when the client left; None when it is over the limit."""
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"")
        over = declared.isdigit() and int(declared) > self.limit
        if over and b"expect" in headers:
            return None  # the client asked first, and has not sent it
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return message
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self.limit:
                over = True
            if over:
                chunks.clear()
            else:
                chunks.append(chunk)
            if not message.get("more_body", False) or size > DISCARDED:
                return None if over else b"".join(chunks)
