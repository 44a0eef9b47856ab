"""How a run is told on a page: durations, statuses as the wire knows them, JSON that hides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from statestore.clock import now
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.models import Status
from workflows.visible import clipped, duration, visible

__all__ = ["Badge", "Data", "ago", "badge", "clipped", "data", "duration", "text_of", "visible"]


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


def ago(moment: datetime) -> str:
    """`3 hours 5 minutes ago`."""
    return f"{duration(max(now() - moment, timedelta()))} ago"


@dataclass(frozen=True, kw_only=True)
class Data:
    """A JSON value on a page: a line of it, and all of it, which is "" when the line says everything already."""

    short: str
    full: str = ""
    note: str = ""
    #: Where all of it can be had, for what is cut.
    link: str = ""


SHORT = 160
MOST = 200_000


def data(value: Json, *, short: int = SHORT, most: int = MOST, link: str = "") -> Data:
    """Text as text, anything else as JSON. Over `most` characters it is cut, and the note says where the rest is."""
    line = value if isinstance(value, str) else jsontext.dumps(value)
    if len(line) <= short and "\n" not in line:
        return Data(short=clipped(line, short))
    whole = text_of(value)
    if len(whole) <= most:
        return Data(short=clipped(line, short), full=visible(whole))
    note = f"Clipped, {most:,} of {len(whole):,} characters."
    rest = "" if link else " GET /runs/<id> answers with all of it."
    return Data(short=clipped(line, short), full=visible(whole[:most]), note=note + rest, link=link)


def text_of(value: Json) -> str:
    """All of a value as a page shows it: text as it is, anything else as JSON in lines."""
    return value if isinstance(value, str) else jsontext.dumps_pretty(value)
