"""How a serving process ends: drained on the first SIGTERM or Ctrl-C, at once on a second Ctrl-C."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from workflows.draining import draining
from workflows.management.base import DONE, INTERRUPTED

logger = logging.getLogger("kampong.serve")

# What may follow the drain: signing off, closing connections.
_GRACE_SECONDS = 5.0


class Ending:
    """Handles the signals of one process. `asked` turns true with the first of them.

    `on_asked` runs in a thread of its own, as a signal handler may not take locks. If anything hangs, the process
    still ends a few seconds after its drain.
    """

    def __init__(self, on_asked: Callable[[], None], drain_seconds: float) -> None:
        self.asked = False
        self._on_asked = on_asked
        self._drain_seconds = drain_seconds
        self._asked_at = 0.0

    def install(self) -> None:
        """Take SIGTERM and SIGINT."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    def seconds_left(self) -> float:
        """What is left of the drain."""
        if not self.asked:
            return self._drain_seconds
        return max(0.0, self._asked_at + self._drain_seconds - time.monotonic())

    def _handle(self, signal_number: int, frame: FrameType | None) -> None:
        if not self.asked:
            self.asked = True
            self._asked_at = time.monotonic()
            threading.Thread(target=self._drain, name="draining", daemon=True).start()
        elif signal_number == signal.SIGINT:
            os._exit(INTERRUPTED)

    def _drain(self) -> None:
        draining.set()
        self._on_asked()
        time.sleep(self._drain_seconds + _GRACE_SECONDS)
        logger.error("something did not end within the drain; ending the process")
        sys.stdout.flush()
        os._exit(DONE)
