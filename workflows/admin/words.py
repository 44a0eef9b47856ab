"""How a run is told on a page: durations, statuses as the wire knows them, JSON that hides nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from statestore.clock import now
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.models import Status

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"))
#: What changes how the rest of a line reads, or cannot be seen at all: it is shown by its code.
_UNSEEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


@dataclass(frozen=True, kw_only=True)
class Badge:
    """A word with a tone: good, bad, wait, busy or quiet."""

    text: str
    tone: str


_BADGES = {
    Status.QUEUED: Badge(text="running", tone="busy"),
    Status.RUNNING: Badge(text="running", tone="busy"),
    Status.AWAITING: Badge(text="awaiting approval", tone="wait"),
    Status.RESUMED: Badge(text="went on", tone="quiet"),
    Status.COMPLETED: Badge(text="completed", tone="good"),
    Status.REJECTED: Badge(text="rejected", tone="quiet"),
    Status.FAILED: Badge(text="failed", tone="bad"),
    Status.EXPIRED: Badge(text="expired", tone="quiet"),
    Status.CANCELLED: Badge(text="cancelled", tone="quiet"),
    Status.INTERRUPTED: Badge(text="interrupted", tone="bad"),
}


def badge(status: str) -> Badge:
    """The status as a reader knows it: queued reads running (design 5.3)."""
    return _BADGES[Status(status)]


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


def ago(moment: datetime) -> str:
    """`3 hours 5 minutes ago`."""
    return f"{duration(max(now() - moment, timedelta()))} ago"


def visible(text: str) -> str:
    """The text with every character that cannot be seen, or that turns the line around, written as its code."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def clipped(text: str, limit: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


@dataclass(frozen=True, kw_only=True)
class Data:
    """A JSON value on a page: a line of it, and all of it, which is "" when the line says everything already."""

    short: str
    full: str = ""
    note: str = ""


SHORT = 160
MOST = 200_000


def data(value: Json, *, short: int = SHORT, most: int = MOST) -> Data:
    """Text as text, anything else as JSON. Over `most` characters it is cut, and the note says where the rest is."""
    line = value if isinstance(value, str) else jsontext.dumps(value)
    if len(line) <= short and "\n" not in line:
        return Data(short=clipped(line, short))
    whole = value if isinstance(value, str) else jsontext.dumps_pretty(value)
    note = ""
    if len(whole) > most:
        note = f"Cut: {most} of {len(whole)} characters are shown. GET /runs/<id> answers with all of it."
        whole = whole[:most]
    return Data(short=clipped(line, short), full=visible(whole), note=note)
