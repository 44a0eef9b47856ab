"""The Celery application: how a message looks, and how the broker is spoken to.

A message carries workspace and run id as JSON; no other form is read. The Run row is the truth, so nothing depends on
what the broker does with a message: what it loses is sent again, and what it delivers twice finds nothing to do.
"""

from __future__ import annotations

import logging
import time
from typing import Any
from urllib.parse import urlsplit

import kombu
from celery import Celery
from celery.app.amqp import AMQP
from django.conf import settings

from statestore.conf import value as setting

logger = logging.getLogger("kampong.broker")

#: The name under which messages are sent; a release that changed it would leave those of the one before.
ADVANCE = "kampong.advance_run"

CONNECT_SECONDS = 4.0
#: Between attempts to connect; Celery's own pauses grow to half a minute, and runs would wait for it.
RETRY_SECONDS = 1.0
LOOKS = 10
#: How long a sender waits for the broker's word that it has the message.
CONFIRM_SECONDS = 5.0
HEARTBEAT_SECONDS = 30

#: A message that a lost worker held comes back after the first, looked for at the second. Neither is waited for: a
#: queued run is sent again after 5 s, and one that was begun after its lease.
REDIS_VISIBLE_AGAIN_SECONDS = 3600
REDIS_LOOK_SECONDS = 5


class Connection(kombu.Connection):  # type: ignore[misc, name-defined, unused-ignore]  # kombu ships no types
    """Goes on trying, whatever is wrong with the broker, and says once an outage that it does."""

    def ensure_connection(
        self, errback: Any = None, max_retries: int | None = None, *args: Any, callback: Any = None, **options: Any
    ) -> Any:
        if errback is None or max_retries:
            return super().ensure_connection(errback, max_retries, *args, callback=callback, **options)
        said = False
        while True:
            try:
                self.connect()
                return self
            except (*self.connection_errors, *self.channel_errors, OSError) as error:
                # Its kind alone: the text may quote the address with its password.
                if not said:
                    logger.warning(
                        "the broker at %s cannot be reached (%s); trying on", broker_place(), type(error).__name__
                    )
                said = True
            for _ in range(LOOKS):
                if callback is not None:
                    callback()  # raises when the worker is to end
                time.sleep(RETRY_SECONDS / LOOKS)


class _Amqp(AMQP):  # type: ignore[misc]
    Connection = Connection


def make_app() -> Celery:
    """One for each use: what sends and what takes share no connection and no registered task."""
    # No fix-ups: Django is set up before anything of this is imported, and each thread minds its own connections.
    app = Celery("kampong", amqp=_Amqp, set_as_current=False, fixups=[])
    app.conf.update(
        broker_url=broker_url(),
        broker_connection_timeout=CONNECT_SECONDS,
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,
        broker_heartbeat=HEARTBEAT_SECONDS,
        broker_transport_options=_transport_options(),
        task_default_queue=setting("KAMPONG_QUEUE_NAME"),
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        # A run is not given up because the broker went away; and nobody who reaches the broker commands a worker.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
    )
    return app


def broker_url() -> str:
    """Where the broker is, with its password; empty when nobody has said."""
    return str(getattr(settings, "BROKER_URL", ""))


def broker_place() -> str:
    """Host and port of the broker, for the log."""
    parts = urlsplit(broker_url())
    return f"{parts.hostname or 'localhost'}:{parts.port}" if parts.port else parts.hostname or "localhost"


def on_redis() -> bool:
    return urlsplit(broker_url()).scheme in ("redis", "rediss")


def _transport_options() -> dict[str, Any]:
    given: dict[str, Any] = getattr(settings, "BROKER_TRANSPORT_OPTIONS", {})
    if not on_redis():
        return {"confirm_publish": True} | given
    return {
        "visibility_timeout": REDIS_VISIBLE_AGAIN_SECONDS,
        "unacked_restore_interval": REDIS_LOOK_SECONDS,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_keepalive": True,
    } | given
