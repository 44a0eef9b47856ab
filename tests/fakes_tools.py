"""A tool server on loopback that answers by script and remembers what it was asked.

    script = {"GET /items": {"status": 200, "json": [1, 2]}, "POST /mail": [{"error": "gone"}, {"text": "ok"}]}
    with FakeTools(script) as tools:
        ... call tools.url + "/items" ...
    assert [request.method for request in tools.requests] == ["GET"]

A key is "METHOD /path" (the query does not count) or "METHOD full-url". An answer is `{status, headers, json | text |
base64}`; `{error: text}` drops the connection without an answer. A single mapping answers every call, a list one call
each; a call past its end, or without an entry, is noted in `failures` and answered 599. Beyond that an answer may say
`hang: seconds` (wait before answering, or until the server ends) and `drip: seconds` (one byte of the body at a time).
With `keep_alive=False` every connection ends with its answer, so that no client keeps one to a server that is gone.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

Answer = Mapping[str, Any]
Script = Mapping[str, Answer | list[Answer]]


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One request as it arrived, `at` so many seconds of this process's monotonic clock.

    `url` is whole, with a mounted host's own address restored.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    at: float

    def header(self, name: str) -> str | None:
        """The first header of that name, in any case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class FakeTools:
    """A scripted server in threads of this process. Reach it from any process by `url`."""

    def __init__(self, script: Script | None = None, *, port: int = 0, keep_alive: bool = True) -> None:
        self.keep_alive = keep_alive
        self.script: dict[str, Answer | list[Answer]] = dict(script or {})
        self.requests: list[Recorded] = []
        self.failures: list[str] = []
        self._lock = threading.Lock()
        self._asked: dict[str, int] = {}
        self._mounts: dict[str, str] = {}
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.tools = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The server's address, without a slash at its end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def mounted(self, base: str) -> str:
        """An address here that stands for another host's (`https://slack.com`): requests are recorded as made to it."""
        prefix = "/~" + urlsplit(base).netloc
        self._mounts[prefix] = base.rstrip("/")
        return self.url + prefix

    def close(self) -> None:
        """Stop answering; whoever still waits is dropped."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def answer(self, method: str, target: str, headers: tuple[tuple[str, str], ...], body: bytes) -> Answer:
        """Record a request and take its answer from the script."""
        url = self._restored(target)
        with self._lock:
            self.requests.append(Recorded(method=method, url=url, headers=headers, body=body, at=time.monotonic()))
            key = self._key(method, url)
            if key is None:
                return self._fail(f"no answer is scripted for {method} {url}")
            answers = self.script[key]
            number = self._asked.get(key, 0)
            self._asked[key] = number + 1
            if isinstance(answers, Mapping):
                return answers
            if number >= len(answers):
                return self._fail(f"call {number + 1} of {key} is past the end of its {len(answers)} answers")
            return answers[number]

    def _restored(self, target: str) -> str:
        for prefix, base in self._mounts.items():
            if target == prefix or target.startswith((prefix + "/", prefix + "?")):
                return base + target.removeprefix(prefix)
        return self.url + target

    def _key(self, method: str, url: str) -> str | None:
        whole = url.partition("?")[0]
        for candidate in (f"{method} {url}", f"{method} {whole}", f"{method} {urlsplit(url).path}"):
            if candidate in self.script:
                return candidate
        return None

    def _fail(self, problem: str) -> Answer:
        self.failures.append(problem)
        return {"status": 599, "text": problem}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    tools: FakeTools

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        tools = self.server.tools
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = tools.answer(self.command, self.path, tuple(self.headers.items()), body)
        if "hang" in answer:
            tools.closing.wait(answer["hang"])
        if "error" in answer or tools.closing.is_set():
            self.close_connection = True
            return
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        content, kind = content_of(answer)
        headers = {str(name): str(value) for name, value in (answer.get("headers") or {}).items()}
        self.send_response(answer.get("status", 200))
        given = {name.lower() for name in headers}
        if kind and "content-type" not in given:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name, value)
        if "content-length" not in given:
            self.send_header("Content-Length", str(len(content)))
        if not self.server.tools.keep_alive:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        if "drip" not in answer:
            self.wfile.write(content)
            return
        for byte in content:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.tools.closing.wait(answer["drip"]):
                return

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _handle

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


def content_of(answer: Answer) -> tuple[bytes, str]:
    """The bytes of a scripted answer, and the content type that goes with them."""
    if "json" in answer:
        return json.dumps(answer["json"], ensure_ascii=False).encode(), "application/json"
    if "base64" in answer:
        return base64.b64decode(answer["base64"]), "application/octet-stream"
    text = str(answer.get("text", ""))
    return text.encode(), "text/plain; charset=utf-8" if text else ""
