"""`/ws/approvals`: what waits, as `GET /approvals` tells it, and then each change, numbered (design 5.2).

Refused in the handshake, before any data: a page of another site, nobody, and somebody who may not see requests. A
connection holds a coroutine, no thread and no connection to the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError, InterfaceError

from approvals.live.entrance import standings_of
from approvals.live.watching import NOT_ALLOWED, TOO_SLOW, TRY_AGAIN, Closed, Message, Watch, tailer
from workflows.engine import jsontext
from workflows.errors import NotAllowed, NotAuthenticated

logger = logging.getLogger(__name__)

#: Messages that a slow reader may lag behind before it has to connect again.
BACKLOG = 100


class ApprovalsConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels ships no types
    """One watcher of the queue. What it sends is not read."""

    watch: Watch | None = None
    writer: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        try:
            standings = await sync_to_async(standings_of, thread_sensitive=False)(self.scope)
        except (NotAuthenticated, NotAllowed):
            await self.close(NOT_ALLOWED)
            return
        except (DatabaseError, InterfaceError) as error:
            logger.warning("cannot read who connects (%s)", type(error).__name__)
            await self.close(TRY_AGAIN)
            return
        await self.accept()
        self.loop, self.inbox = asyncio.get_running_loop(), asyncio.Queue[Message | Closed]()
        self.watch = Watch(standings=standings, deliver=self.deliver)
        self.writer = asyncio.create_task(self.write())
        tailer.watch(self.watch)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing is asked over this socket."""

    async def disconnect(self, code: int) -> None:
        if self.watch is not None:
            tailer.leave(self.watch)
        if self.writer is not None:
            self.writer.cancel()

    def deliver(self, item: Message | Closed) -> bool:
        """Called from the tailer's thread: False when the reader is gone, or lags too far."""
        room = self.inbox.qsize() < BACKLOG
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads
            self.loop.call_soon_threadsafe(self.inbox.put_nowait, item if room else Closed(code=TOO_SLOW))
            return room
        return False

    async def write(self) -> None:
        while True:
            item = await self.inbox.get()
            if isinstance(item, Closed):
                await self.close(item.code)
                return
            await self.send(jsontext.dumps(item))
