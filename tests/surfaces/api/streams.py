"""A client of event streams, as a browser reads them."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from statestore.jsontext import loads


@dataclass(frozen=True, kw_only=True)
class Frame:
    id: str
    data: dict[str, Any]

    @property
    def kind(self) -> str:
        """`state`, or the event's type."""
        kind: str = self.data["event"]["type"] if self.data["type"] == "event" else self.data["type"]
        return kind


@dataclass
class Stream:
    """Frames as they arrive. `comments` are the lines that a browser ignores."""

    response: httpx2.Response
    comments: list[str] = field(default_factory=list)
    _arrived: queue.Queue[Frame | None] = field(default_factory=queue.Queue)

    def read(self) -> None:
        """Until the server ends it or the client leaves."""
        try:
            lines: dict[str, str] = {}
            for line in self.response.iter_lines():
                if line.startswith(":"):
                    self.comments.append(line)
                elif line:
                    name, _, text = line.partition(": ")
                    assert name not in lines, "one data line for each frame"
                    lines[name] = text
                elif lines:
                    assert lines.keys() == {"id", "data"}
                    self._arrived.put(Frame(id=lines["id"], data=loads(lines["data"])))
                    lines = {}
        except (httpx2.StreamError, httpx2.TransportError):
            pass  # the test left
        finally:
            self._arrived.put(None)

    def next(self, seconds: float = 60) -> Frame:
        """The next frame; AssertionError when the stream ended."""
        frame = self._arrived.get(timeout=seconds)
        assert frame is not None, "the stream ended"
        return frame

    def rest(self, seconds: float = 60) -> list[Frame]:
        """All frames until the server ends the stream."""
        frames = []
        while (frame := self._arrived.get(timeout=seconds)) is not None:
            frames.append(frame)
        return frames

    def quiet(self, seconds: float) -> bool:
        """Whether nothing arrives for so long."""
        try:
            self._arrived.get(timeout=seconds)
        except queue.Empty:
            return True
        return False


@contextmanager
def stream(address: str, headers: dict[str, str]) -> Iterator[Stream]:
    """An open stream; closed when the block ends."""
    with httpx2.Client(timeout=60) as client, client.stream("GET", address, headers=headers) as response:
        assert response.status_code == 200, response.read()
        opened = Stream(response)
        reader = threading.Thread(target=opened.read, daemon=True)
        reader.start()
        try:
            yield opened
        finally:
            # Closing alone would leave the connection open for as long as the reader waits on it.
            with contextlib.suppress(OSError):
                response.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            reader.join(30)
