"""Which headers of a request may become `trigger.headers` (engine semantics 18)."""

from __future__ import annotations

from collections.abc import Iterable

CREDENTIAL_WORDS = (
    "authorization",
    "cookie",
    "token",
    "secret",
    "signature",
    "api-key",
    "apikey",
    "password",
    "credential",
)


def passed_on(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Lower-case names, repeated ones joined by comma and blank, none whose name looks like a credential."""
    kept: dict[str, str] = {}
    for name, text in headers:
        lower = name.lower()
        if any(word in lower.replace("_", "-") for word in CREDENTIAL_WORDS):
            continue
        kept[lower] = f"{kept[lower]}, {text}" if lower in kept else text
    return kept
