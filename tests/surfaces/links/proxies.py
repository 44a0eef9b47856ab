"""A proxy as it stands before the site: it ended TLS, says so in a header, and cuts the path prefix off or does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOST = "kampong.example.org"


@contextmanager
def proxy(site: str, *, cuts_off: str = "") -> Iterator[str]:
    """The address of a proxy for `site`, as `https://HOST` would be reached; `cuts_off` is a prefix it removes."""

    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: text for name, text in self.headers.items() if name.lower() != "connection"}
            headers |= {"X-Forwarded-Proto": "https", "Connection": "close"}
            inside = HTTPConnection(urlsplit(site).netloc, timeout=30)
            inside.request(self.command, self.path.removeprefix(cuts_off), body, headers)
            answer = inside.getresponse()
            content = answer.read()
            inside.close()
            self.send_response_only(answer.status)
            for name, text in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, text)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_HEAD = _pass_on

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Outside:
    """A browser in front of the proxy: it keeps cookies, with their path, and follows nothing by itself."""

    def __init__(self, address: str) -> None:
        self._netloc = urlsplit(address).netloc
        self.cookies: dict[str, str] = {}
        self.paths: dict[str, str] = {}

    def ask(self, method: str, address: str, body: str = "", **headers: str) -> tuple[HTTPResponse, str]:
        """Ask for an address of the site, absolute or from its root; the answer and its text."""
        parts = urlsplit(address)
        assert parts.scheme in ("", "https"), address
        assert parts.netloc in ("", HOST), address
        sent = {"Host": HOST, "Cookie": "; ".join(f"{name}={text}" for name, text in self.cookies.items())}
        if method == "POST":
            sent |= {"Origin": f"https://{HOST}", "Content-Type": "application/x-www-form-urlencoded"}
        connection = HTTPConnection(self._netloc, timeout=30)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body.encode(), sent | headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        for line in answer.headers.get_all("Set-Cookie") or []:
            pair, _, rest = line.partition(";")
            name, _, value = pair.partition("=")
            self.cookies[name] = value
            self.paths[name] = next(part.strip()[5:] for part in rest.split(";") if part.strip().startswith("Path="))
        return answer, text
