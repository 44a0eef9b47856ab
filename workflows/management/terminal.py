"""Text for a terminal: data cannot move the cursor, pose as our own lines, or turn the reading direction."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.spec.errors import Note

# Control characters but newline and tab, marks that reorder text, line separators, halves of a surrogate pair.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_MARGIN = "  | "


def plain(text: str) -> str:
    """The text with everything that a terminal would obey written as an escape; newlines and tabs stay."""
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str, most: int | None = None) -> str:
    """The text in one line, cut with an ellipsis when it is longer than `most`."""
    line = " ".join(plain(text).split())
    return line if most is None or len(line) <= most else line[: most - 1] + "…"


def warning_of(path: Path, note: Note) -> str:
    """One line for something that the author of a spec should know."""
    place = f"{path}:{note.line}" if note.line is not None else str(path)
    return one_line(f"warning: {place}: {note.where}: {note.message} [{note.code}]")


def quoted(text: str) -> str:
    """Data of several lines, each behind a margin: none can be taken for a line of ours."""
    return "\n".join(_MARGIN + line for line in plain(text).split("\n"))


def pretty(value: Json) -> str:
    """A value as indented JSON, safe to print."""
    return plain(jsontext.dumps_pretty(value))


def to_type(command: str) -> str:
    """A command of ours as it can be pasted here: with the Python that runs now, which need not be on the path."""
    script = Path(sys.argv[0])
    words = [Path(sys.executable), script if script.name == "manage.py" else Path("manage.py")]
    shown = [os.path.relpath(word) if word.is_relative_to(Path.cwd()) else str(word) for word in words]
    return f"{shlex.join(shown)} {command}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of columns that align, headed; the last column has no fixed width."""
    cells = [list(heads), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def facts(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of `name  value`, values aligned."""
    kept = list(rows)
    width = max((len(name) for name, _ in kept), default=0)
    return [f"  {name.ljust(width)}  {one_line(value)}" for name, value in kept]


def time_left(until: datetime, moment: datetime) -> str:
    """`6 d 23 h`, `4 h 10 min`, `12 min`, `under a minute`."""
    minutes = int((until - moment).total_seconds() // 60)
    if minutes < 1:
        return "under a minute"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def duration(seconds: float, *, whole: bool = False) -> str:
    """`0.4 s`, `12.3 s`, `2 min 5 s`, `1 h 0 min`; `whole` leaves out tenths."""
    if seconds < 59.95:
        return f"{int(seconds)} s" if whole else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s"
