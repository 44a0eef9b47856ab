"""Servers that break the rules of HTTP, or use them against us: each call ends, in time, in a clear failure."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.adapters.raw_server import RawServer, ok
from workflows.adapters.http import HttpTool
from workflows.adapters.sending import Sender
from workflows.engine.effects import HttpCall, ToolFailed, ToolOutput

ANSWER = b'{"a":1}'
BOMB = gzip.compress(b"\0" * (64 * 1024 * 1024))
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def run(url: str, timeout: float = 30, **changes: Any) -> ToolOutput | ToolFailed:
    fields: dict[str, Any] = {"tool": "lookup", "method": "GET", "url": url, "headers": (), "body": None}
    http = HttpTool(Sender(timeout=timeout, private_addresses=["*"]))
    return http.call(HttpCall(**{**fields, **changes}), deadline_check=lambda: None)


def answered(answer: Callable[[socket.socket, int], Any], **changes: Any) -> ToolOutput | ToolFailed:
    with RawServer(answer) as server:
        return run(f"{server.url}/x", **changes)


def failed(answer: Callable[[socket.socket, int], Any], **changes: Any) -> ToolFailed:
    outcome = answered(answer, **changes)
    assert isinstance(outcome, ToolFailed), outcome
    return outcome


def endless(head: bytes, block: bytes) -> Callable[[socket.socket, int], Any]:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(block)

    return answer


# Packing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(ANSWER)),
        ("X-GZIP", gzip.compress(ANSWER)),
        ("identity", ANSWER),
        ("gzip", gzip.compress(ANSWER[:3]) + gzip.compress(ANSWER[3:])),
        ("gzip", gzip.compress(ANSWER) + b"\0" * 10),
        ("deflate", zlib.compress(ANSWER)),
        ("deflate", zlib.compress(ANSWER)[2:-4]),
        ("gzip, identity", gzip.compress(ANSWER)),
        ("gzip, gzip", gzip.compress(gzip.compress(ANSWER))),
    ],
)
def test_a_packed_answer_is_read_whole(encoding: str, body: bytes) -> None:
    packed = ok(body, f"Content-Encoding: {encoding}")
    assert answered(lambda connection, _: connection.sendall(packed)) == ToolOutput(value={"a": 1})


@pytest.mark.parametrize("cut", [1, 4, 9, 20])
def test_a_packed_answer_that_ends_early_does_not_pass_for_a_whole_one(cut: int) -> None:
    packed = ok(gzip.compress(b"transfer 100 to account 7")[:-cut], "Content-Encoding: gzip")
    found = failed(lambda connection, _: connection.sendall(packed), mode="text")
    assert "too early" in found.error
    assert found.retryable


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "gzip, gzip, gzip"])
def test_a_packing_that_is_not_understood_is_named_and_not_tried_again(encoding: str) -> None:
    found = failed(lambda connection, _: connection.sendall(ok(b"x", f"Content-Encoding: {encoding}")))
    assert encoding in found.error
    assert "Accept-Encoding" in found.error
    assert not found.retryable


@pytest.mark.parametrize(("encoding", "bomb"), [("gzip", BOMB), ("gzip, gzip", gzip.compress(BOMB))])
def test_a_bomb_is_not_unpacked(encoding: str, bomb: bytes) -> None:
    found = failed(lambda c, _: c.sendall(ok(bomb, f"Content-Encoding: {encoding}")), mode="text")
    assert "4 MiB" in found.error


# Endless and broken ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "block"),
    [
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 100),
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 500),
        (CHUNKED + b"5;", b"a" * 65536),
        (CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        (CHUNKED + b"0\r\n", b"X-A: b\r\n" * 500),
    ],
    ids=["interim answers", "headers", "a chunk's extension", "chunks", "trailers"],
)
def test_an_endless_answer_ends_at_a_limit(head: bytes, block: bytes) -> None:
    started = time.monotonic()
    found = failed(endless(head, block), timeout=2, mode="text")
    assert time.monotonic() - started < 30
    assert found.failure == "http"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n" + ANSWER,
        CHUNKED + b"7\r\n" + ANSWER + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n[1]x",
        b"SSH-2.0-x\r\n",
        b"",
    ],
)
def test_an_answer_that_breaks_off_or_off_the_rules_is_no_answer(answer: bytes) -> None:
    def answering(connection: socket.socket, number: int) -> bool:
        connection.sendall(answer)
        return False

    found = failed(answering)
    assert "got no answer" in found.error
    assert (found.failure, found.retryable) == ("http", True)
    assert ".." not in found.error


def test_a_protocol_that_was_not_asked_for_is_no_answer() -> None:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
    assert "http" in failed(lambda connection, _: connection.sendall(switch)).failure


def test_a_long_status_text_is_cut() -> None:
    answer = b"HTTP/1.1 500 " + b"r" * 60_000 + b"\r\nContent-Length: 0\r\n\r\n"
    assert len(failed(lambda connection, _: connection.sendall(answer)).error) < 5000


def test_a_slow_handshake_meets_the_deadline() -> None:
    with RawServer(lambda *_: None) as server:
        started = time.monotonic()
        outcome = run(server.url.replace("http:", "https:"), timeout=0.5)
        assert time.monotonic() - started < 30
        assert "0.5 seconds" in str(outcome)


def test_a_server_that_reads_slowly_meets_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:  # it takes the connection, and nobody reads it
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        assert "0.5 seconds" in str(run(url, timeout=0.5, method="POST", body=b"x" * 30_000_000))


def test_a_hanging_resolver_meets_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_named: over.wait(30) and [])
    assert "0.5 seconds" in str(run("http://slow.example/", timeout=0.5))
    over.set()


# One attempt, one request ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_a_server_that_hangs_up_after_the_request_sees_it_once(method: str) -> None:
    with RawServer(lambda *_: False) as server:
        for attempt in (1, 2, 3):
            assert "got no answer" in str(run(server.url, method=method))
            assert len(server.requests) == attempt


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_that_closes_idle_connections_without_a_word_fails_no_call(method: str) -> None:
    """Were a connection used again, some requests would go out just as it closes, and could not be repeated."""

    def answer(connection: socket.socket, number: int) -> bool:
        connection.sendall(ok(b"1"))
        return False

    with RawServer(answer) as server:
        assert {str(run(server.url, method=method)) for _ in range(40)} == {str(ToolOutput(value=1))}
        assert len(server.requests) == 40


@pytest.mark.parametrize(
    "headers",
    [
        (("Content-Length", "10"),),
        (("content-length", "1"),),
        (("Content-Length", "3"), ("Transfer-Encoding", "chunked")),
        (("Transfer-Encoding", "gzip"),),
        (("Host", "a.example"), ("host", "b.example")),
    ],
)
def test_headers_that_would_break_the_request_are_refused_before_it_is_made(headers: Any) -> None:
    with RawServer(lambda connection, _: connection.sendall(ok(b"1"))) as server:
        outcome = run(server.url, method="POST", body=b"abc", headers=headers)
        assert isinstance(outcome, ToolFailed)
        assert (outcome.failure, outcome.retryable) == ("build", False)
        assert server.requests == []
