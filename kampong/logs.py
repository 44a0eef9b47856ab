"""The two forms of the log (`KAMPONG_LOG_FORMAT`): a line to read, or one JSON object a line. Both carry bound ids."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from kampong.security import hide
from workflows.bound import ids
from workflows.visible import visible

#: What every JSON line has; `exception`, and the ids of `workflows.bound`, stand where there are any.
FIELDS = ("time", "level", "logger", "message")
_TRACEBACK = "Traceback (most recent call last):"


class Text(logging.Formatter):
    """As it always was, and at the end of the line the run and the request that it belongs to.

    A line that begins at the margin is ours: what a text from outside breaks is moved in, and what would move the
    cursor or change a colour is written as its code.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record)).replace("\n", "\n  ")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        bound = ids()
        told = " ".join(f"{name}={bound[name]}" for name in ("run", "request") if name in bound)
        return f"{line} [{told}]" if told else line

    def formatException(self, ei: Any) -> str:
        return hide(super().formatException(ei))


class Json(logging.Formatter):
    """One object a line, in ASCII, so that no text can break a line or the encoding."""

    def format(self, record: logging.LogRecord) -> str:
        message, mark, rest = record.getMessage().partition(f"\n{_TRACEBACK}")
        exceptions = [_TRACEBACK + rest] if mark else []
        if record.exc_info:
            exceptions.append(hide(self.formatException(record.exc_info)))
        told = {"time": _time(record.created), "level": record.levelname, "logger": record.name, "message": message}
        if exceptions:
            told["exception"] = "\n".join(exceptions)
        return json.dumps({**told, **ids()})


def _time(seconds: float) -> str:
    """In UTC, as all times that a program reads."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
