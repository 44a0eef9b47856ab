"""A wake-up across processes, through the channel layer: somebody wrote events, so watchers look now.

Only a wake-up: it carries nothing, and one that is lost is made good by the next look. Without a layer that crosses
processes (CHANNEL_REDIS_URL) nothing of this runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from typing import Any

from channels.layers import InMemoryChannelLayer, get_channel_layer

logger = logging.getLogger("kampong.events")

GROUP = "kampong.events"
#: Wake-ups that come closer together are one.
PAUSE_SECONDS = 0.02
PATIENCE_SECONDS = 2.0
RETRY_SECONDS = 1.0


class Crossing:
    """One thread a process, started by the first who rings or listens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._listeners: set[Callable[[], None]] = set()
        self._rung = asyncio.Event()
        self._wanted = asyncio.Event()
        self._down = False

    def ring(self) -> None:
        """Wake the watchers of all processes. Returns at once; never fails."""
        if loop := self._running():
            loop.call_soon_threadsafe(self._rung.set)

    def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` at every ring, from the thread; it must not block."""
        self._listeners.add(wake)
        if loop := self._running():
            loop.call_soon_threadsafe(self._wanted.set)

    def close(self) -> None:
        """End the thread; the next who rings or listens starts another."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is not None and thread is not None and self._pid == os.getpid():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(PATIENCE_SECONDS)

    def _running(self) -> asyncio.AbstractEventLoop | None:
        """The thread's loop; None where no layer crosses processes. A child that was forked starts its own."""
        layer = get_channel_layer()
        if layer is None or isinstance(layer, InMemoryChannelLayer):
            return None
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._pid, self._loop = os.getpid(), asyncio.new_event_loop()
                self._rung, self._wanted = asyncio.Event(), asyncio.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop, layer), name="kampong-crossing", daemon=True
                )
                self._thread.start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop, layer: Any) -> None:
        tasks = [loop.create_task(self._forever(part, layer)) for part in (self._send, self._receive)]
        try:
            loop.run_forever()
        finally:
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(layer.flush())
            loop.close()

    async def _forever(self, part: Callable[[Any], Any], layer: Any) -> None:
        while True:
            try:
                await part(layer)
            except Exception as error:  # noqa: BLE001  (the layer's errors are its own; all mean: not now)
                if not self._down:
                    logger.warning(
                        "no wake-ups across processes (%s); watchers see events at their next look",
                        type(error).__name__,
                    )
                self._down = True
                await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, layer: Any) -> None:
        while True:
            await self._rung.wait()
            self._rung.clear()
            await asyncio.wait_for(layer.group_send(GROUP, {"type": "news"}), PATIENCE_SECONDS)
            self._up()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _receive(self, layer: Any) -> None:
        await self._wanted.wait()
        channel = await asyncio.wait_for(layer.new_channel(), PATIENCE_SECONDS)
        await asyncio.wait_for(layer.group_add(GROUP, channel), PATIENCE_SECONDS)
        self._up()
        while True:
            await layer.receive(channel)
            for wake in list(self._listeners):
                wake()
            await asyncio.sleep(PAUSE_SECONDS)

    def _up(self) -> None:
        if self._down:
            logger.warning("wake-ups across processes again")
        self._down = False


#: That of this process.
crossing = Crossing()
