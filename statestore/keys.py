"""Keys, their kinds and ranges (design 4): an author's key never reaches a kind that a service owns."""

from __future__ import annotations

import hashlib
import re

from statestore.errors import BadKey, ReservedKind

APPROVAL = "approval:"
ONCE = "once:"
INCIDENT = "incident:"
LOCK = "lock:"
CURSOR = "cursor:"
SEEN = "seen:"
HOOK = "hook:"
RECALL = "recall:"
#: Prefixes that only services write.
RESERVED_KINDS = (APPROVAL, ONCE, INCIDENT, LOCK, CURSOR, SEEN, HOOK, RECALL)

#: Bytes of the part that an author chooses, that is without a reserved prefix.
MAX_KEY_BYTES = 400
_SURROGATE = re.compile("[\ud800-\udfff]")
_LAST_CHARACTER = "\U0010ffff"


def kind_of(key: str) -> str | None:
    """The reserved prefix of a key, or None for an author's key."""
    return next((kind for kind in RESERVED_KINDS if key.startswith(kind)), None)


def check_key(key: str, kinds: tuple[str, ...]) -> None:
    """Refuse a key that is no text, empty, too long, or of a kind outside `kinds` (none: the author's keys)."""
    check_text(key, "key")
    check_kind(key, kinds)
    part = key.removeprefix(kind_of(key) or "")
    if not part:
        raise BadKey("A key must not be empty.")
    size = len(part.encode())
    if size > MAX_KEY_BYTES:
        raise BadKey(f"A key may take {MAX_KEY_BYTES} bytes; this one takes {size}. Use a hash of it.")


def check_kind(key: str, kinds: tuple[str, ...]) -> None:
    """Refuse a key or prefix outside the kinds that the store was opened for."""
    kind = kind_of(key)
    if kind is None and not kinds:
        return
    if kind is None:
        raise ReservedKind(f"This store was opened for {', '.join(kinds)} only.", "")
    if kind not in kinds:
        raise ReservedKind(f"Keys that start with {kind!r} are kept by Kampong itself. Choose another name.", kind)


def check_text(text: str, what: str) -> None:
    """Refuse what is not text, and the two characters that a database cannot keep."""
    if not isinstance(text, str):
        raise BadKey(f"A {what} must be text, not {type(text).__name__}.")
    if "\0" in text:
        raise BadKey(f"A {what} must not hold a NUL character.")
    if not text.isascii() and _SURROGATE.search(text):
        raise BadKey(f"A {what} must not hold half of a surrogate pair.")


def range_end(prefix: str) -> str | None:
    """The first text after all those that start with `prefix`, in code point order; None when there is no such text."""
    head = prefix.rstrip(_LAST_CHARACTER)
    if not head:
        return None
    following = ord(head[-1]) + 1
    # Surrogates are no characters: the next one after U+D7FF is U+E000.
    return head[:-1] + chr(0xE000 if following == 0xD800 else following)


def hidden_kinds(prefix: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Reserved kinds that lie inside the range of an author's prefix and must be left out of a list."""
    return () if kinds else tuple(kind for kind in RESERVED_KINDS if kind.startswith(prefix))


def fingerprint(key: str) -> str:
    """A short name for a key that must not be shown: the same for the same key, of no use to anybody else."""
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def shown(key: str) -> str:
    """The key as a page or a log may show it.

    An approval key only as its fingerprint, and a key that a step took as well: it is made of what came from outside.
    """
    secret = next((kind for kind in (APPROVAL, RECALL, ONCE) if key.startswith(kind)), None)
    return f"{secret}#{fingerprint(key)}" if secret is not None else key
