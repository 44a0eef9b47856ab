"""A real RabbitMQ and a real Redis, a queue of this test's own on each, and workers that take from it."""

from __future__ import annotations

import contextlib
import socket
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pytest_django import Settings

from tests.brokers.proxy import Wire
from tests.databases import AMQP_URL, REDIS_URL
from tests.fakes_tools import FakeTools
from tests.served import until
from tests.workbench import HEAD, write_spec
from workflows.brokers import sending
from workflows.brokers.app import Connection
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.worker import WorkerPool

URLS = {"rabbitmq": AMQP_URL, "redis": REDIS_URL}

#: one (POST) - two (POST).
TWO_CALLS = (
    HEAD
    + """\
  tools:
    - {{name: one, action: http_request, method: POST, url: "{url}/one", timeout_ms: 60000}}
    - {{name: two, action: http_request, method: POST, url: "{url}/two"}}
  workflow:
    - {{step: one, type: tool, tool: one}}
    - {{step: two, type: tool, tool: two}}
"""
)


def need(kind: str) -> str:
    """The broker's address; the test is skipped, with the address, where nobody listens there."""
    parts = urlsplit(URLS[kind])
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), 5).close()
    except OSError as error:
        pytest.skip(f"no {kind} at {parts.hostname}:{parts.port} ({error.strerror or error})")
    return URLS[kind]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A queue at a broker, behind a wire that can be cut."""

    kind: str
    direct: str
    url: str
    queue: str
    wire: Wire

    @contextlib.contextmanager
    def channel(self) -> Iterator[Any]:
        """Past the wire and past our code."""
        with Connection(self.direct) as connection, connection.channel() as channel:
            yield channel

    def waiting(self) -> int:
        """How many messages lie there that nobody took."""
        with self.channel() as channel:
            if self.kind == "redis":
                return int(channel.client.llen(self.queue))
            return int(channel.queue_declare(self.queue, passive=True).message_count)

    def purge(self) -> int:
        """Throw away what lies there."""
        with self.channel() as channel:
            return int(channel.queue_purge(self.queue) or 0)

    def publish(self, body: Any, *, task: str, **options: Any) -> None:
        """A message made by hand."""
        headers = {"task": task, "id": str(uuid.uuid4()), "lang": "py"}
        with Connection(self.direct) as connection:
            producer = connection.Producer()
            producer.publish(body, routing_key=self.queue, exchange=self.queue, headers=headers, **options)

    def remove(self) -> None:
        with self.channel() as channel:
            if self.kind == "redis":
                # What a killed worker held would come back in an hour, and bring the queue with it.
                for tag, held in channel.client.hgetall("unacked").items():
                    if self.queue.encode() in held:
                        channel.client.hdel("unacked", tag)
                        channel.client.zrem("unacked_index", tag)
                for key in channel.client.keys(f"*{self.queue}*"):
                    channel.client.delete(key)
            else:
                channel.queue_delete(self.queue)
                channel.exchange_delete(self.queue)


def place_at(kind: str) -> Place:
    direct = need(kind)
    parts = urlsplit(direct)
    wire = Wire(parts.hostname or "", parts.port or 0)
    netloc = parts.netloc.rpartition("@")[0]
    url = parts._replace(netloc=f"{netloc}@127.0.0.1:{wire.port}" if netloc else f"127.0.0.1:{wire.port}").geturl()
    return Place(kind=kind, direct=direct, url=url, queue=f"kampong-test-{uuid.uuid4().hex[:12]}", wire=wire)


@pytest.fixture(params=["rabbitmq", "redis"])
def place(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Place]:
    """The settings of this process name a queue of its own at this broker."""
    place = place_at(request.param)
    settings.KAMPONG_QUEUE = "celery"
    settings.KAMPONG_QUEUE_NAME = place.queue
    settings.BROKER_URL = place.url
    settings.TASKS = {"default": {"BACKEND": "workflows.brokers.backend.CeleryBackend"}}
    yield place
    sending.sender().close()
    sending._sender = None
    place.wire.cut()
    place.remove()


rabbitmq_only = pytest.mark.parametrize("place", ["rabbitmq"], indirect=True)
redis_only = pytest.mark.parametrize("place", ["redis"], indirect=True)


@pytest.fixture
def pools(place: Place) -> Iterator[Callable[..., WorkerPool]]:
    """Starts worker threads on this test's queue, and stops them at the end."""
    started: list[WorkerPool] = []

    def start(threads: int = 1) -> WorkerPool:
        pool = WorkerPool(threads)
        started.append(pool)
        pool.start()
        return pool

    yield start
    for pool in started:
        pool.stop(20)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    """The outside service; it counts."""
    with FakeTools({"POST /one": {"json": {"ok": True}}, "POST /two": {"json": {"ok": True}}}) as service:
        yield service


@pytest.fixture
def spec(tmp_path: Path, tools: FakeTools) -> SpecFile:
    """one - two, both calls."""
    return write_spec(tmp_path, TWO_CALLS, url=tools.url)


def ended(*runs: Run) -> bool:
    """Whether all of them are completed."""
    rows = Run.objects.filter(pk__in=[run.pk for run in runs])
    return all(status == Status.COMPLETED for status in rows.values_list("status", flat=True))


def wait_for_end(*runs: Run, seconds: float = 60) -> None:
    until(lambda: ended(*runs), seconds)


def calls(tools: FakeTools) -> dict[str, int]:
    """How often each of the two was called."""
    return {name: sum(one.url.endswith(f"/{name}") for one in tools.requests) for name in ("one", "two")}
