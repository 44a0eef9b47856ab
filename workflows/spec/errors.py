"""What loading says about a file: errors that refuse it and notes that do not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

#: Keys and list indexes from the document root; empty for the whole document.
Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class SpecError:
    """A reason to refuse the file. `line` and `column` (from 1) are None when the document has nothing at `path`.

    `reason` is the message without its place, where the message tells that as well (format 2).
    """

    path: Path
    message: str
    line: int | None = None
    column: int | None = None
    reason: str = ""

    @property
    def where(self) -> str:
        """The path as people read it: `agent.workflow.1.if`."""
        return dotted(self.path)

    @property
    def beside_place(self) -> str:
        """What to say where line and column are said already."""
        return self.reason or self.message

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}: " if self.line is not None else ""
        return f"{place}{self.where}: {self.beside_place}" if self.path else f"{place}{self.beside_place}"


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something the author should know about a file that loads."""

    code: str
    path: Path
    message: str
    line: int | None = None
    column: int | None = None

    @property
    def where(self) -> str:
        return dotted(self.path)


def dotted(path: Path) -> str:
    return ".".join(str(key) for key in path)


def listed(names: Iterable[str], most: int = 50) -> str:
    """Names for a message; a long list is cut, so that no file can make messages that fill the memory."""
    shown = list(names)
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(clipped(name) for name in shown[:most]) + more


def clipped(text: str, most: int = 120) -> str:
    """A text from the file for a message, cut when it is long."""
    return text if len(text) <= most else f"{text[:most]}..."
