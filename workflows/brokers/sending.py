"""Sends messages from a thread of its own: whoever starts a run, or decides, never waits for the broker.

While the broker is away, messages are kept here, each run once, and sent when it is back. A process that ends before
that loses them: recovery sends again.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from typing import Any

from workflows.brokers.app import ADVANCE, CONFIRM_SECONDS, RETRY_SECONDS, broker_place, make_app, on_redis

logger = logging.getLogger("kampong.broker")

#: What is over it is left to recovery.
MOST_KEPT = 10_000
#: How long a process that ends, such as a command, waits for what it has still to send.
FLUSH_SECONDS = 2.0


class Sender:
    """Keeps what is to be sent, and sends it in order."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._kept: dict[tuple[str, str], None] = {}
        self._thread: threading.Thread | None = None
        self._ending = False
        self._down = False
        self._app = make_app()
        self._producer: Any = None

    def send(self, workspace: str, run_id: str) -> None:
        """Returns at once; never fails."""
        with self._changed:
            if len(self._kept) >= MOST_KEPT:
                return
            self._kept[workspace, run_id] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kampong-sender", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until everything is sent, at most so long; whether it is. Not while the broker is away."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._kept or self._down, seconds) and not self._kept

    def close(self) -> None:
        """Send no more; what is kept is dropped."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(CONFIRM_SECONDS)

    def _run(self) -> None:
        try:
            while (message := self._next()) is not None:
                if self._try_to_send(*message):
                    with self._changed:
                        self._kept.pop(message, None)
                        self._changed.notify_all()
                else:
                    with self._changed:
                        self._changed.wait_for(lambda: self._ending, RETRY_SECONDS)
        finally:
            self._drop_connection()

    def _next(self) -> tuple[str, str] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._kept or self._ending)
            return None if self._ending else next(iter(self._kept))

    def _try_to_send(self, workspace: str, run_id: str) -> bool:
        try:
            if self._producer is None:
                self._producer = self._app.amqp.Producer(self._connect(), auto_declare=False)
            self._app.send_task(
                ADVANCE,
                [workspace, run_id],
                producer=self._producer,
                retry=False,
                timeout=CONFIRM_SECONDS,
                confirm_timeout=CONFIRM_SECONDS,
            )
        except Exception as error:  # noqa: BLE001  (each transport has errors of its own; all mean: not now)
            self._drop_connection()
            self._say_down(error)
            return False
        self._say_up()
        return True

    def _connect(self) -> Any:
        options = dict(self._app.conf.broker_transport_options)
        if on_redis():
            options["socket_timeout"] = CONFIRM_SECONDS
        connection = self._app.connection_for_write(transport_options=options)
        connection.connect()
        return connection

    def _drop_connection(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            producer.__connection__.collect(socket_timeout=0.2)
        except Exception as error:  # noqa: BLE001  (so broken that it cannot even be closed)
            logger.debug("a connection to the broker is given up: %s", type(error).__name__)

    def _say_down(self, error: Exception) -> None:
        """Once an outage. The error's kind alone: its text may quote the broker's address with its password."""
        if not self._down:
            kind = type(error.__cause__ or error).__name__
            logger.warning(
                "the broker at %s takes no messages (%s); runs stay queued and are sent when it is back",
                broker_place(),
                kind,
            )
        with self._changed:
            self._down = True
            self._changed.notify_all()

    def _say_up(self) -> None:
        if self._down:
            logger.warning("the broker at %s takes messages again", broker_place())
        self._down = False


_lock = threading.Lock()
_sender: tuple[int, Sender] | None = None


def sender() -> Sender:
    """The one of this process; a child that was forked makes its own."""
    global _sender
    with _lock:
        if _sender is None or _sender[0] != os.getpid():
            _sender = (os.getpid(), Sender())
        return _sender[1]


@atexit.register
def _flush_at_the_end() -> None:
    if _sender is not None and _sender[0] == os.getpid():
        began = time.monotonic()
        if not _sender[1].flush(FLUSH_SECONDS):
            logger.debug("ended with unsent messages after %.1f s; recovery sends them", time.monotonic() - began)
