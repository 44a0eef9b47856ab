"""Hiding the secrets of a request in text that people will read (engine semantics 14.5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from workflows.engine import forms

MARK = "[REDACTED]"

#: What percent-encoders leave alone besides letters, digits and `-._~`: nothing; in a URI's component; in a whole URL.
_LEFT_ALONE = ("", "!'()*", "!#$&'()*+,/:;=?@[]~%")


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret, in each spelling it may have travelled in, replaced by `[REDACTED]`.

    Occurrences that overlap are hidden together, so the longest wins and no rest of one secret shows beside another.
    """
    return "".join(_replaced(text, sorted(_occurrences(text, secrets))))


def _occurrences(text: str, secrets: Iterable[str]) -> Iterator[tuple[int, int]]:
    for spelling in {spelling for secret in secrets for spelling in _spellings(secret)}:
        start = text.find(spelling)
        while start >= 0:
            yield start, start + len(spelling)
            start = text.find(spelling, start + 1)


def _replaced(text: str, occurrences: list[tuple[int, int]]) -> Iterator[str]:
    done = 0
    for start, end in occurrences:
        if start >= done:
            yield text[done:start]
            yield MARK
        done = max(done, end)
    yield text[done:]


def _spellings(secret: str) -> set[str]:
    """As it is, percent-encoded, form-encoded, JSON-escaped; hex digits in either case."""
    if not secret:
        return set()
    encoded = {quote(secret, safe=safe, errors="replace") for safe in _LEFT_ALONE}
    encoded |= {quote_plus(secret, errors="replace"), forms.encoded(secret)}
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    escaped |= {text.replace("/", "\\/") for text in escaped}
    return {secret} | escaped | encoded | {_lower_hex(form) for form in encoded}


def _lower_hex(encoded: str) -> str:
    first, *rest = encoded.split("%")
    return "%".join([first, *(piece[:2].lower() + piece[2:] for piece in rest)])
