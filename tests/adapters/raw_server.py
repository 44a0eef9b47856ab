"""A server on loopback that answers in raw bytes, for what no well-behaved server does.

    with RawServer(lambda connection, number: connection.sendall(b"HTTP/1.1 200 OK\\r\\n...")) as server: ...

`answer` is called once for each request, with its number from 1; `requests` keeps each as it arrived. A connection goes
on until `answer` closes it, or returns False.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


def ok(body: bytes, *headers: str) -> bytes:
    """A complete answer."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class RawServer:
    """A scripted server in threads of this process; `over` is set when it ends."""

    def __init__(self, answer: Callable[[socket.socket, int], Any]) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.over = threading.Event()
        self._answer = answer
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        # Not closed under the thread: it would go on to accept for whoever is given the same number next.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join(30)
        self._listening.close()

    def drip(self, connection: socket.socket, content: bytes, pause: float = 0.05) -> None:
        """Send a byte now and then, until the other side or the test has had enough."""
        for byte in content:
            if self.over.wait(pause):
                return
            connection.sendall(bytes([byte]))

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while request := _request(connection):
                with self._lock:
                    self.requests.append(request)
                    number = len(self.requests)
                if self._answer(connection, number) is False:
                    return


def _request(connection: socket.socket) -> bytes:
    """One whole request; empty when the other side is done."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        if not piece:
            return b""
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    while length and len(body) < int(length[1]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
