"""The services that the examples call: a shop, a help desk, a pager, a market, a model, a Slack.

Only the standard library. Every call is a line in one file, so that the counts outlive the process: `GET /` shows
them, which proves that no step ran twice, and `GET /counts` what was done for each order, ticket and incident.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from argparse import ArgumentParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from outside.calls import Calls
from outside.saying import Refused
from scripted_model import complete

MODEL = "/v1/chat/completions"
SLACK = "/slack/chat.postMessage"
#: What is asked to see how things stand; it is no call, and no line in the log.
LOOKS = ("/", "/counts")
_LISTED = "/service/orders?"
_LARGEST = 1024 * 1024

Answer = tuple[int, dict[str, Any]]


def answer(calls: Calls, method: str, path: str, body: Any, key: str | None = None) -> Answer:
    """What the service says to a call; `key` is its Idempotency-Key."""
    if method == "GET" and path == "/":
        return 200, {"calls": dict(calls.counts)}
    if method == "GET" and path == "/counts":
        return 200, calls.told()
    if method == "POST" and path == MODEL:
        calls.count(f"POST {MODEL}")
        return 200, complete(body)
    if method == "POST" and path == SLACK:
        number = calls.count(f"POST {SLACK}")
        return 200, {"ok": True, "channel": body["channel"], "ts": f"1796000000.{number:06}", "message": body}
    said = calls.answer(method, path, body, key)
    if said is None:
        return 404, {"error": f"{method} {path} is not a route of the demo's service; GET / lists them"}
    return said.status, said.body


class Service(ThreadingHTTPServer):
    """The server, with what it was called for."""

    daemon_threads = True

    def __init__(self, port: int, calls: Calls, slow: float = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.calls, self.slow = calls, slow


class Handler(BaseHTTPRequestHandler):
    """Reads one call, says what the service answers."""

    server: Service
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LARGEST:
            self.close_connection = True
            self._say(411 if not length else 413, {"error": "a body of at most 1 MiB with its length is needed"})
            return
        try:
            body = json.loads(self.rfile.read(int(length)))
        except ValueError:
            self._say(400, {"error": "the body is no JSON"})
            return
        self._answer(body)

    do_PUT = do_POST

    def _answer(self, body: Any) -> None:
        key = self.headers.get("Idempotency-Key")
        try:
            said = answer(self.server.calls, self.command, self.path, body, key)
            if self.command != "GET" and self.path != MODEL:
                time.sleep(self.server.slow)
            self._say(*said)
        except Refused as refusal:
            self._say(400, {"error": str(refusal)})
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            self._say(400, {"error": f"the body is not what this route takes ({type(error).__name__})"})

    def _say(self, status: int, said: dict[str, Any]) -> None:
        content = json.dumps(said, ensure_ascii=False).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """One short line for each call; looking at the counts is none, and a list of orders comes every half minute."""
        if self.path not in LOOKS and not self.path.startswith(_LISTED):
            self.log_message("%s %s -> %s", self.command, self.path, int(code))

    def log_message(self, format: str, *arguments: Any) -> None:
        sys.stderr.write(f"  service: {format % arguments}\n")
        sys.stderr.flush()


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--calls", type=Path, required=True, help="the file that keeps the calls")
    parser.add_argument("--slow", type=float, default=0, help="seconds from what a POST or PUT does to its answer")
    options = parser.parse_args()
    calls = Calls(options.calls, f"POST {MODEL}", f"POST {SLACK}")
    server = Service(options.port, calls, options.slow)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
