"""Hiding the secrets of a request in text that people will read (engine semantics 14.5)."""

from __future__ import annotations

import base64
import functools
import heapq
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus, unquote

from workflows.engine import forms

MARK = "[REDACTED]"
#: So many backslashes may stand for one: three encoders around each other. Unbounded, a long run would cost its square.
_WRAPPED = 8
#: The user and password of a URL, also of one that lacks its scheme.
_USERINFO = re.compile(r"(?:[^:/?#]+:)?//([^/?#]+)@|([^/?#@]*:[^/?#]*)@")
_PIECE = re.compile(r"\\+|.", re.DOTALL)


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret, in each spelling it may have travelled in, replaced by `[REDACTED]`.

    Occurrences that overlap are hidden together, so the longest wins and no rest of one secret shows beside another.
    """
    # Merged while they are found: a short secret can occur millions of times.
    return "".join(_replaced(text, heapq.merge(*_occurrences(text, secrets))))


def passwords_in(url: str) -> frozenset[str]:
    """The password in a URL, as written there and as sent: in base64 nothing in it would be recognised."""
    found = _USERINFO.match(url.strip())
    if found is None:
        return frozenset()
    user, _, password = (found[1] or found[2]).partition(":")
    sent = f"{unquote(user)}:{unquote(password)}".encode("utf-8", "replace")
    return frozenset([password, unquote(password), base64.b64encode(sent).decode("ascii")]) - {""}


def _occurrences(text: str, secrets: Iterable[str]) -> Iterator[Iterator[tuple[int, int]]]:
    """For each spelling its occurrences, in order."""
    for secret in filter(None, secrets):
        for spelling in _whole(secret):
            yield _found(text, spelling)
        yield (found.span(1) for found in _mixed(secret).finditer(text))


def _found(text: str, spelling: str) -> Iterator[tuple[int, int]]:
    start = text.find(spelling)
    while start >= 0:
        yield start, start + len(spelling)
        start = text.find(spelling, start + 1)


def _replaced(text: str, occurrences: Iterable[tuple[int, int]]) -> Iterator[str]:
    done = 0
    for start, end in occurrences:
        if start >= done:
            yield text[done:start]
            yield MARK
        done = max(done, end)
    yield text[done:]


@functools.lru_cache(maxsize=256)
def _whole(secret: str) -> frozenset[str]:
    """As it is, percent-encoded, form-encoded, JSON-escaped."""
    encoded = {quote(secret, safe="", errors="replace"), quote_plus(secret, errors="replace"), forms.encoded(secret)}
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    return frozenset({secret} | encoded | escaped)


@functools.lru_cache(maxsize=256)
def _mixed(secret: str) -> re.Pattern[str]:
    """Every character in whichever of its spellings: encoders differ in what they leave alone, and one wraps another.

    It looks ahead, so that occurrences which overlap are found as well. The groups are atomic: no secret, and no
    answer from outside, can make the search slow.
    """
    pieces = (f"(?>{'|'.join(_ways(piece))})" for piece in _PIECE.findall(secret))
    return re.compile("(?=(" + "".join(pieces) + "))")


def _ways(piece: str) -> list[str]:
    """Patterns of one character, or of a run of backslashes: an encoder doubles those, and so does the next."""
    if piece[0] == "\\":
        least = len(piece)
        return [rf"\\{{{least},{least * _WRAPPED}}}", rf"(?:%(?:25){{0,3}}5[cC]){{{least}}}"]
    escaped = {json.dumps(piece, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    percent = quote(piece, safe="", errors="replace")
    if percent == piece:
        percent = f"%{ord(piece):02X}"
    ways = {piece, percent, *escaped}
    ways |= {"+"} if piece == " " else set()
    ways |= {"\\/"} if piece == "/" else set()
    # Hex digits come in either case, everything else as it is.
    return [_pattern(way, piece) for way in sorted(ways, key=len, reverse=True)]


def _pattern(way: str, character: str) -> str:
    if way == character:
        return re.escape(way)
    wrapped = re.escape(way).replace("%", "%(?:25){0,3}").replace(r"\\", rf"\\{{1,{_WRAPPED}}}")
    return f"(?i:{wrapped})"
