"""No message or log line of an HTTP call shows a secret, however the wire spells it (engine semantics 14.5)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.adapters.raw_server import RawServer, ok
from tests.fakes_tools import FakeTools
from workflows.adapters.http import HttpTool
from workflows.adapters.sending import Sender
from workflows.engine.effects import HttpCall, ToolFailed

SECRET = "HummingBird"


def run(url: str, *, allowed: tuple[str, ...] = ("*",), secret: str = SECRET, **changes: Any) -> ToolFailed:
    fields: dict[str, Any] = {"tool": "lookup", "method": "GET", "url": url, "headers": (), "body": None}
    http = HttpTool(Sender(timeout=5, private_addresses=allowed))
    call = HttpCall(**{**fields, "secrets": frozenset({secret}), **changes})
    outcome = http.call(call, deadline_check=lambda: None)
    assert isinstance(outcome, ToolFailed), outcome
    return outcome


@pytest.mark.parametrize("secret", ["LocalHost", "Local", "cal", "LocalHost:9"])
def test_a_secret_in_the_host_is_hidden_in_the_spelling_of_the_wire(secret: str) -> None:
    refused = run("http://LocalHost:9/x", allowed=(), secret=secret).error
    assert "KAMPONG_PRIVATE_ADDRESSES" in refused
    assert secret.partition(":")[0].lower() not in refused.replace("a loopback address", "").lower()


def test_a_secret_host_of_another_script_is_hidden_too() -> None:
    error = run("http://bücher.invalid/", secret="bücher").error
    assert "xn--" not in error
    assert "bücher" not in error


@pytest.mark.parametrize("location", [f"https://{SECRET}.example/{SECRET}", f"http://{SECRET}.invalid/"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_cannot_make_us_show_it_by_a_redirect(location: str, method: str) -> None:
    answer = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
    with RawServer(lambda connection, _: connection.sendall(answer)) as server:
        assert SECRET.lower() not in run(server.url, method=method, allowed=("127.0.0.1",)).error.lower()


def test_a_server_cannot_make_us_show_it_by_its_status_text() -> None:
    answer = f"HTTP/1.1 500 {'x' * 3995} {SECRET}\r\nContent-Length: 0\r\n\r\n".encode()
    with RawServer(lambda connection, _: connection.sendall(answer)) as server:
        assert "Humm" not in run(server.url).error


@pytest.mark.parametrize("secret", ["e", "E", "R", "[", "1", ".", "+", "\\"])
def test_a_secret_of_one_letter_is_hidden_once(secret: str) -> None:
    with FakeTools({"GET /": {"status": 500, "text": ""}}) as tools:
        error = run(tools.url + "/", secret=secret).error
    assert secret not in error.replace("[REDACTED]", "").replace(": GET ", "")
    assert "[R[" not in error


@pytest.mark.parametrize("url", ["{}/p?key={}", "{}/{}/x", "http://{1}.invalid/"])
def test_nothing_is_logged_at_any_level(url: str, caplog: pytest.LogCaptureFixture) -> None:
    body = b'{"note": "' + SECRET.encode() + b'"}'
    with RawServer(lambda connection, _: connection.sendall(ok(body, f"X-Echo: {SECRET}"))) as server:
        caplog.set_level(logging.DEBUG)
        call = url.format(server.url, SECRET)
        headers = (("X-Api-Key", SECRET),)
        run(call, headers=headers, failure_when=({"path": "note", "exists": True, "message_path": "note"},))
    assert SECRET.lower() not in caplog.text.lower()
