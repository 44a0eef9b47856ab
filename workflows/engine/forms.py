"""Form encoding, as browsers do it: for query parameters, form bodies and the spellings of a secret."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote_plus


def encoded(text: str) -> str:
    """One name or value: a blank is `+`; letters, digits and `*-._` stay; all else is percent-encoded UTF-8."""
    return quote_plus(text, safe="*", errors="replace").replace("~", "%7E")


def joined(pairs: Iterable[tuple[str, str]]) -> str:
    """The pairs as `name=value&name=value`, in their order."""
    return "&".join(f"{encoded(name)}={encoded(value)}" for name, value in pairs)
