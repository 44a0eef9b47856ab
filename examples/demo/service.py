"""The service that the examples call: orders, refunds, cases, messages, tickets, payments, pages, a model, a Slack.

Only the standard library. Every call is a line in one file, so that the counts outlive the process: `GET /` shows
them, which proves that no step ran twice.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from argparse import ArgumentParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scripted_model import complete

ORDERS: dict[str, dict[str, Any]] = {
    "A-1042": {"item": "blue cup", "total": 48.5, "customer": "mei@example.org"},
    "A-1043": {"item": "set of six bowls", "total": 180, "customer": "ravi@example.org"},
    "A-1044": {"item": "teapot", "total": 72, "customer": "siti@example.org"},
}
#: What can be made with POST, and how its ids begin.
MADE = {"refunds": "R", "cases": "C", "messages": "M", "tickets": "T", "payments": "P", "pages": "N"}
MODEL = "/v1/chat/completions"
SLACK = "/slack/chat.postMessage"
_LARGEST = 1024 * 1024

Answer = tuple[int, dict[str, Any]]


class Calls:
    """Every call that was made, counted by route; kept in a file with one line for each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        made = {f"POST /service/{name}": 0 for name in MADE}
        self.counts = {"GET /service/orders": 0, **made, f"POST {MODEL}": 0, f"POST {SLACK}": 0}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self.counts[line] = self.counts.get(line, 0) + 1

    def count(self, route: str) -> int:
        """Note one call; how many there are now."""
        with self._lock:
            self.counts[route] = self.counts.get(route, 0) + 1
            with self._path.open("a", encoding="utf-8") as file:
                file.write(route + "\n")
            return self.counts[route]


def answer(calls: Calls, method: str, path: str, body: Any) -> Answer:
    """What the service says to a call."""
    parts = path.partition("?")[0].strip("/").split("/")
    if method == "GET" and parts == [""]:
        return 200, {"calls": dict(calls.counts)}
    if method == "POST" and path == MODEL:
        calls.count(f"POST {MODEL}")
        return 200, complete(body)
    if method == "POST" and path == SLACK:
        number = calls.count(f"POST {SLACK}")
        return 200, {"ok": True, "channel": body["channel"], "ts": f"1796000000.{number:06}", "message": body}
    if method == "GET" and parts[:2] == ["service", "orders"] and len(parts) == 3:
        calls.count("GET /service/orders")
        if parts[2] not in ORDERS:
            return 404, {"error": f"there is no order {parts[2]}; known are {', '.join(ORDERS)}"}
        return 200, {"id": parts[2], "currency": "SGD", **ORDERS[parts[2]]}
    if method == "POST" and parts[0] == "service" and len(parts) == 2 and parts[1] in MADE:
        number = calls.count(f"POST /service/{parts[1]}")
        fields = body if isinstance(body, dict) else {"given": body}
        return 201, {**fields, "id": f"{MADE[parts[1]]}-{number}"}
    return 404, {"error": f"{method} {path} is not a route of the demo's service; GET / lists them"}


def handler(calls: Calls) -> type[BaseHTTPRequestHandler]:
    """The request handler that counts into `calls`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._say(*answer(calls, "GET", self.path, None))

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > _LARGEST:
                self.close_connection = True
                self._say(411 if not length else 413, {"error": "a body of at most 1 MiB with its length is needed"})
                return
            try:
                body = json.loads(self.rfile.read(int(length)))
                self._say(*answer(calls, "POST", self.path, body))
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
            """One short line for each call; looking at the counts is none."""
            if self.path != "/":
                self.log_message("%s %s -> %s", self.command, self.path, int(code))

        def log_message(self, format: str, *arguments: Any) -> None:
            sys.stderr.write(f"  service: {format % arguments}\n")
            sys.stderr.flush()

    return Handler


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--calls", type=Path, required=True, help="the file that keeps the calls")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), handler(Calls(options.calls)))
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
