"""Takes messages from the broker for the worker threads of this process.

Celery's own worker minds the connection (heartbeats, reconnecting, how much is taken ahead) in one thread. It starts
no threads for the work: what it takes is handed to ours, which know the drain, the database and our supervision. A
message is acknowledged when its turn is over, and at most one for each thread is held, so that a busy process keeps
none from the others.
"""

from __future__ import annotations

import functools
import logging
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

from celery.concurrency.base import BasePool, apply_target
from celery.worker import WorkController, state
from celery.worker.strategy import default
from django.db import DatabaseError, InterfaceError

from workflows.brokers.app import ADVANCE, make_app
from workflows.supervisor import Loop, drop_dead_connections
from workflows.wakeup import Bell

logger = logging.getLogger("kampong.worker")

STOP_SECONDS = 5.0


class Broker:
    """`take` gives a worker thread what it has to do next. `bell` rings when there is something."""

    def __init__(self, threads: int, perform: Callable[[str, str], None], bell: Bell) -> None:
        self._threads, self._perform, self._bell = threads, perform, bell
        self._handed: deque[Callable[[], None]] = deque()
        self._taking = True
        self._app = make_app()
        # Not shared: Celery would register it with every other application of this process as well.
        self._app.task(self._received, name=ADVANCE, typing=False, shared=False, Strategy=f"{__name__}:careful")
        self._controller: WorkController | None = None
        self._loop = Loop("worker-broker", self._live, Bell())

    def start(self) -> None:
        """Connect, and go on trying; returns at once."""
        self._loop.start()

    def take(self) -> Callable[[], None] | None:
        """One piece of work that is this thread's; None when there is none."""
        try:
            return self._handed.popleft() if self._taking else None
        except IndexError:
            return None

    def stop_taking(self) -> None:
        """What was taken and is not begun goes back to the broker when the connection ends."""
        self._taking = False
        self._in_its_thread(self._cancel)

    def stop(self) -> None:
        """Leave the broker. What was not acknowledged is delivered to others, who find nothing to do."""
        self._taking = False
        self._loop.stop()
        state.should_stop = 0
        self._in_its_thread(lambda: None)
        self._loop.join(STOP_SECONDS)

    # In Celery's thread ------------------------------------------------------------------------------------------

    def _live(self) -> float:
        """From connecting to the end of Celery's worker: told to stop, or by an error that it could not get over."""
        state.should_stop = None
        self._controller = WorkController(
            app=self._app,
            pool=_pool_for(self._hand_over),
            concurrency=self._threads,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,  # of workers among themselves; the connection has its own
        )
        self._controller.start()
        self._handed.clear()  # it was never acknowledged: the broker delivers it again
        return 1.0

    def _hand_over(self, work: Callable[[], None]) -> None:
        self._handed.append(work)
        self._bell.ring()

    def _cancel(self) -> None:
        queues = self._app.amqp.queues
        for name in list(queues.consume_from):
            queues.deselect(name)
            consumer = self._controller and self._controller.consumer.task_consumer
            if consumer:
                consumer.cancel_by_queue(name)

    def _in_its_thread(self, act: Callable[[], None]) -> None:
        consumer = getattr(self._controller, "consumer", None)
        if consumer is not None:
            consumer.call_soon(act)

    # In a worker thread ------------------------------------------------------------------------------------------

    def _received(self, *args: Any, **kwargs: Any) -> None:
        message = read(args)
        if message is None:
            logger.error("a message names no run: dropped")
            return
        try:
            self._perform(*message)
        except (DatabaseError, InterfaceError) as error:
            # Not told to Celery: the Run row says what comes of it, and recovery sends again.
            logger.warning("%s: %s; recovery takes it up", type(error).__name__, str(error).strip())
            drop_dead_connections()


def read(args: tuple[Any, ...]) -> tuple[str, str] | None:
    """Workspace and run id; None for what is neither."""
    if len(args) != 2 or not all(isinstance(one, str) for one in args):
        return None
    workspace, run_id = args
    try:
        uuid.UUID(run_id)
    except ValueError:
        return None
    return workspace, run_id


def careful(task: Any, app: Any, consumer: Any, **options: Any) -> Callable[..., Any]:
    """Celery's way from a message to the pool, with a message that it cannot read dropped.

    Its own way ends the worker, and the broker would deliver that message to the next one, and the next.
    """
    handle = default(task, app, consumer, **options)

    def handle_or_drop(message: Any, body: Any, ack: Any, reject: Any, *rest: Any, **more: Any) -> Any:
        def acknowledge(log: logging.Logger, errors: tuple[type[Exception], ...]) -> None:
            consumer.call_soon(_acknowledge, message, errors)

        try:
            return handle(message, body, acknowledge, reject, *rest, **more)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            logger.error("a message cannot be read (%s): dropped", type(error).__name__)
            _acknowledge(message, consumer.connection_errors)
            return None

    return handle_or_drop


def _acknowledge(message: Any, errors: tuple[type[Exception], ...]) -> None:
    try:
        message.ack()
    except errors as error:
        # The connection that brought it is gone. It comes again, and finds nothing to do.
        logger.info("a message could not be acknowledged (%s)", type(error).__name__)


def _pool_for(hand_over: Callable[[Callable[[], None]], None]) -> type[BasePool]:
    """What Celery takes for its pool of threads."""

    class Ours(BasePool):  # type: ignore[misc]  # celery ships no types
        body_can_be_buffer = True
        signal_safe = False

        def on_apply(
            self,
            target: Any,
            args: Any = None,
            kwargs: Any = None,
            callback: Any = None,
            accept_callback: Any = None,
            **options: Any,
        ) -> None:
            # Named, as Celery would otherwise look for the application of this thread, which has none.
            told = {**(kwargs or {}), "app": self.app}
            hand_over(functools.partial(apply_target, target, args, told, callback, accept_callback))

    return Ours
