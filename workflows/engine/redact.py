"""Hiding the secrets of a request in text that people will read (engine semantics 14.5)."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from workflows.engine import forms

MARK = "[REDACTED]"


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret, in each spelling it may have travelled in, replaced by `[REDACTED]`.

    Occurrences that overlap are hidden together, so the longest wins and no rest of one secret shows beside another.
    """
    return "".join(_replaced(text, sorted(_occurrences(text, secrets))))


def _occurrences(text: str, secrets: Iterable[str]) -> Iterator[tuple[int, int]]:
    for secret in filter(None, secrets):
        for spelling in _whole(secret):
            start = text.find(spelling)
            while start >= 0:
                yield start, start + len(spelling)
                start = text.find(spelling, start + 1)
        for found in _mixed(secret).finditer(text):
            yield found.span(1)


def _replaced(text: str, occurrences: list[tuple[int, int]]) -> Iterator[str]:
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
    """Every character in whichever of its spellings: encoders differ in what they leave alone.

    It looks ahead, so that occurrences which overlap are found as well. The groups are atomic: no secret, and no
    answer from outside, can make the search slow.
    """
    return re.compile("(?=(" + "".join(f"(?>{'|'.join(_ways(character))})" for character in secret) + "))")


def _ways(character: str) -> list[str]:
    """Patterns of one character, the longest first."""
    escaped = {json.dumps(character, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    percent = quote(character, safe="", errors="replace")
    if percent == character:
        percent = f"%{ord(character):02X}"
    ways = {character, percent, *escaped}
    ways |= {"+"} if character == " " else set()
    ways |= {"\\/"} if character == "/" else set()
    # Hex digits come in either case, everything else as it is.
    return [_pattern(way, character) for way in sorted(ways, key=len, reverse=True)]


def _pattern(way: str, character: str) -> str:
    return re.escape(way) if way == character else f"(?i:{re.escape(way)})"
