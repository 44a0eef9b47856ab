"""One HTTP exchange: one request, one answer, under one deadline and one size limit. No redirects, no retries.

Tools and models share it. Nothing is read from the environment: no proxy, no netrc, no certificate paths.
Each exchange has a connection of its own; their number is limited within a process.
"""

from __future__ import annotations

import base64
import functools
import logging
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import h11
import httpcore2
import httpx2

from workflows.adapters.addresses import AddressRefused, PrivateAddresses
from workflows.adapters.guard import Deadline, DeadlineBackend

# At DEBUG it writes hosts and the headers of answers, which hold secrets that nobody could hide there.
logging.getLogger("httpcore2").setLevel(logging.INFO)

MIB: Final = 1024 * 1024
USER_AGENT: Final = "kampong"
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
#: A body is packed once, or twice by mistake; each further layer multiplies what a small body can unpack to.
_LAYERS: Final = 2
_PIECE: Final = 64 * 1024
#: The operating system takes no limit of centuries, which a spec or an option may well name.
_LONGEST_SECONDS: Final = 1_000_000.0
_BAD_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class Unsendable(Exception):
    """The request cannot be put on the wire: the address or a header is malformed. Nothing was sent."""


class NoAnswer(Exception):
    """No complete answer came. `before` is true when no connection was made, so that nothing can have been sent."""

    def __init__(self, message: str, *, before: bool = False, timed_out: bool = False) -> None:
        super().__init__(message)
        self.before = before
        self.timed_out = timed_out


class Unreadable(NoAnswer):
    """An answer came, in a form that is not understood; another try would bring the same."""


class TooLong(Exception):
    """The decoded answer passed the size limit; the rest was not read."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A complete answer. Header names are in lower case; of repeated ones the first counts."""

    status: int
    reason: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def address(url: str) -> httpx2.URL:
    """The parsed URL of an HTTP call; Unsendable when it is not one."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError, UnicodeError) as problem:
        raise Unsendable("is not a valid URL") from problem
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise Unsendable("is not an absolute http or https URL")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise Unsendable("is not a valid URL: its port is out of range")
    return parsed


class Wire:
    """Exchanges within one policy of addresses. Thread safe."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = PrivateAddresses(allowed)
        self._deadline = Deadline()
        self._pool: tuple[int, httpcore2.ConnectionPool | None] = (0, None)

    def exchange(
        self,
        method: str,
        url: httpx2.URL,
        *,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        until: float,
        cap: int,
        before_send: Callable[[], None] | None = None,
    ) -> Answer:
        """Send once and read the whole answer before `until` (monotonic seconds).

        Raises Unsendable, NoAnswer, TooLong or AddressRefused; what `before_send` raises comes through.
        """
        until = min(until, time.monotonic() + _LONGEST_SECONDS)
        request = httpcore2.Request(
            method=method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=_wire_headers(url, headers, method, body),
            content=body if body is not None else b"",
            extensions={"timeout": {"pool": max(0.0, until - time.monotonic())}},
        )
        pool = self._pooled()
        if before_send is not None:
            before_send()
        self._deadline.at = until
        try:
            return self._answer(pool, request, method, cap)
        finally:
            self._deadline.at = None

    def _answer(self, pool: httpcore2.ConnectionPool, request: httpcore2.Request, method: str, cap: int) -> Answer:
        try:
            response = pool.handle_request(request)
            try:
                headers = _read_headers(response.headers)
                chunks = response.iter_stream()
                body = b"" if method == "HEAD" else _decoded(chunks, headers.get("content-encoding", ""), cap)
            finally:
                response.close()
        except httpcore2.TimeoutException as problem:
            before = isinstance(problem, httpcore2.ConnectTimeout | httpcore2.PoolTimeout)
            raise NoAnswer(str(problem) or "timed out", before=before, timed_out=True) from problem
        except httpcore2.ConnectError as problem:
            raise NoAnswer(str(problem) or "the connection was refused", before=True) from problem
        except (httpcore2.LocalProtocolError, h11.LocalProtocolError) as problem:
            # Its text quotes the request, secrets and all, in spellings that nobody redacts.
            raise Unsendable("cannot be sent: the request is malformed") from problem
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as problem:
            raise NoAnswer(str(problem).rstrip(".") or "the connection was closed without an answer") from problem
        reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
        return Answer(status=response.status, reason=reason or _phrase(response.status), headers=headers, body=body)

    def _pooled(self) -> httpcore2.ConnectionPool:
        """This process's pool. After a fork the parent's is forgotten, not closed: its connections are the parent's."""
        owner, pool = self._pool
        if pool is None or owner != os.getpid():
            # No lock: one held by another thread at a fork would stay held. Two threads may each make one; one is kept.
            pool = httpcore2.ConnectionPool(
                ssl_context=httpx2.create_ssl_context(trust_env=False),
                max_connections=100,
                # None is used twice: a server may close one just as the next request goes out, and what was sent on it
                # may have had its effect, so it cannot be sent again.
                max_keepalive_connections=0,
                network_backend=DeadlineBackend(self._allowed, self._deadline),
            )
            self._pool = (os.getpid(), pool)
        return pool


@functools.lru_cache(maxsize=16)
def wire_for(allowed: tuple[str, ...]) -> Wire:
    """This process's wire for one policy: its TLS context takes longer to make than many a call."""
    return Wire(allowed)


def _wire_headers(
    url: httpx2.URL, headers: Iterable[tuple[str, str]], method: str, body: bytes | None
) -> list[tuple[bytes, bytes]]:
    """Host first, then what was given in its order, then the length of the body and our name, unless given."""
    given = [_wire_header(name, value) for name, value in headers]
    names = {name.lower() for name, _ in given}
    sent = given if b"host" in names else [(b"Host", url.netloc), *given]
    if any(name.lower() == b"content-length" and value != str(len(body or b"")).encode() for name, value in given):
        raise Unsendable("cannot be sent: its header Content-Length does not fit the body; leave the header out")
    if {b"content-length", b"transfer-encoding"} <= names:
        raise Unsendable("cannot be sent: it has two headers for the length of its body; leave both out")
    if b"content-length" not in names and b"transfer-encoding" not in names:
        if body is not None:
            sent.append((b"Content-Length", str(len(body)).encode()))
        elif method in ("POST", "PUT", "PATCH"):
            sent.append((b"Content-Length", b"0"))
    if b"user-agent" not in names:
        sent.append((b"User-Agent", USER_AGENT.encode()))
    if url.userinfo and b"authorization" not in names:
        sent.append((b"Authorization", _basic(url)))
    return sent


def _basic(url: httpx2.URL) -> bytes:
    return b"Basic " + base64.b64encode(f"{url.username}:{url.password}".encode())


def _wire_header(name: str, value: str) -> tuple[bytes, bytes]:
    raw_name, raw_value = name.encode("utf-8", "surrogateescape"), value.strip(" \t").encode("utf-8")
    if not _NAME.fullmatch(raw_name):
        raise Unsendable(f"cannot be sent: {name!r} is not a header name")
    if _BAD_VALUE.search(raw_value):
        raise Unsendable(f"cannot be sent: the value of header {name} holds a line break or a control character")
    return raw_name, raw_value


def _read_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw:
        headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return headers


def _decoded(chunks: Iterable[bytes], encoding: str, cap: int) -> bytes:
    """The body, unpacked while it streams and never beyond `cap`: a small packed body can unpack to gigabytes."""
    words = [word for part in encoding.lower().split(",") if (word := part.strip()) not in ("", "identity")]
    if any(word not in _PACKED for word in words) or len(words) > _LAYERS:
        raise Unreadable(
            f"its body is packed in a way that is not understood ({', '.join(words)[:40]}); "
            "an Accept-Encoding header may ask for gzip and deflate only"
        )
    for _ in words:
        chunks = _unpacked(chunks)
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > cap:
            raise TooLong
    return bytes(body)


def _unpacked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """What a gzip or deflate stream holds, in pieces of bounded size; NoAnswer when it is broken or ends early.

    A gzip stream may have several members, one after the other.
    """
    inflate, rest = None, b""
    for packed in chunks:
        rest += packed
        while rest:
            if inflate is None:
                if len(rest) < 2:
                    break  # too little to tell the kinds apart
                inflate = zlib.decompressobj(_window(rest))
            try:
                piece = inflate.decompress(rest, _PIECE)
            except zlib.error as problem:
                raise NoAnswer("the answer's packing is broken") from problem
            if piece:
                yield piece
            rest = inflate.unconsumed_tail
            if inflate.eof:
                rest = inflate.unused_data.lstrip(b"\0")  # zeros may fill up the end
                inflate = None
    if inflate is not None or rest:
        raise NoAnswer("the answer's packing ends too early")


def _window(start: bytes) -> int:
    """What zlib needs to know: servers that say deflate send it with a header or, against the standard, without."""
    has_header = start[:2] == b"\x1f\x8b" or (start[0] & 15 == 8 and (start[0] << 8 | start[1]) % 31 == 0)
    return 47 if has_header else -15


def _phrase(status: int) -> str:
    return str(httpx2.codes.get_reason_phrase(status))


__all__ = [
    "MIB",
    "AddressRefused",
    "Answer",
    "NoAnswer",
    "TooLong",
    "Unreadable",
    "Unsendable",
    "Wire",
    "address",
    "wire_for",
]
