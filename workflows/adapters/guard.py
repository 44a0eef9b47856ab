"""Connections that go to admitted addresses only, and never past a deadline (design 6).

The check of `addresses` runs on every resolved address of every connection, so a redirect or a name that changes its
answer between check and use gains nothing. `DeadlineBackend` also gives a whole exchange one end: each read, write and
handshake gets what is left of it, so a server that drips bytes cannot hold a worker.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any, TypeAlias

import httpcore2

from workflows.adapters.addresses import AddressRefused, PrivateAddresses

SocketOption: TypeAlias = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class Deadline(threading.local):
    """When this thread's present exchange must be over (monotonic seconds); None outside an exchange."""

    at: float | None = None

    def left(
        self, timeout: float | None, over: type[httpcore2.TimeoutException] = httpcore2.ReadTimeout
    ) -> float | None:
        """The smaller of `timeout` and what is left; raises `over` once nothing is."""
        if self.at is None:
            return timeout
        left = self.at - time.monotonic()
        if left <= 0:
            raise over("the time limit is used up")
        return left if timeout is None else min(timeout, left)


class DeadlineBackend(httpcore2.SyncBackend):
    """Connects only to addresses that `allowed` admits, and never past the thread's deadline."""

    def __init__(self, allowed: PrivateAddresses, deadline: Deadline) -> None:
        self._allowed = allowed
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = resolve(host, port, self._deadline.left(timeout, httpcore2.ConnectTimeout))
        for address in addresses:
            self._allowed.check(host, ipaddress.ip_address(address.partition("%")[0]), port)
        problem: Exception | None = None
        for tried, address in enumerate(addresses):
            left = self._deadline.left(timeout, httpcore2.ConnectTimeout)
            share = None if left is None else left / (len(addresses) - tried)
            try:
                stream = super().connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
            else:
                return _DeadlineStream(stream, self._deadline)
        raise problem or httpcore2.ConnectError(f"{host} has no address")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[SocketOption] | None = None
    ) -> httpcore2.NetworkStream:
        raise AddressRefused(path, "a socket file")


class _DeadlineStream(httpcore2.NetworkStream):
    """A stream whose every operation gets what is left of the thread's deadline."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In pieces, so that a peer that reads a byte now and then meets the deadline too.
        view = memoryview(buffer)
        while view:
            self._stream.write(bytes(view[:65536]), self._deadline.left(timeout))
            view = view[65536:]

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        left = self._deadline.left(timeout, httpcore2.ConnectTimeout)
        inner = self._stream.start_tls(ssl_context, server_hostname, left)
        return _DeadlineStream(inner, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def resolve(host: str, port: int, timeout: float | None) -> list[str]:
    """The addresses of a host, within `timeout`: the system's resolver has no limit that we could set."""
    try:
        return [str(ipaddress.ip_address(host.strip("[]")))]
    except ValueError:
        pass
    answers: queue.SimpleQueue[list[str] | OSError | UnicodeError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            answers.put(error)
        else:
            answers.put(list(dict.fromkeys(str(entry[4][0]) for entry in found)))

    threading.Thread(target=look_up, name="kampong-resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout)
    except queue.Empty:
        raise httpcore2.ConnectTimeout("the host's name was not resolved in time") from None
    if isinstance(answer, list):
        return answer
    reason = answer.strerror if isinstance(answer, OSError) and answer.strerror else "not a host name"
    raise httpcore2.ConnectError(f"the host's name could not be resolved ({reason})") from answer
