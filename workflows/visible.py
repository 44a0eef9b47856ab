"""Text for people's eyes: nothing in it is unseen, nothing turns the line around, a line ends where it should."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"))
#: What changes how the rest of a line reads, or cannot be seen at all: it is shown by its code.
_UNSEEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


def visible(text: str) -> str:
    """The text with every character that cannot be seen, or that turns the line around, written as its code."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def clipped(text: str, limit: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def duration(span: timedelta) -> str:
    """`6 days 23 hours`: the two largest units; under a minute is said so."""
    seconds = int(span.total_seconds())
    parts: list[str] = []
    for size, name in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}" + ("s" if count > 1 else ""))
        elif parts:
            break
    return " ".join(parts[:2]) or "less than a minute"
