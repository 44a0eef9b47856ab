"""The table of settings: one prefix, a default and a help text for each, unknown names refused.

Every app declares its rows with `declare` in its own `conf.py`; `value` reads one with its default, so that the apps
work in a Django project that sets none of them. The project's settings module fills them from the environment with
`from_environment`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

PREFIX = "KAMPONG_"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row of the table. `read` turns the environment's text into the value, or raises ValueError."""

    name: str
    default: Any
    help: str
    read: Callable[[str], Any] = str


_table: dict[str, Setting] = {}


def declare(*rows: Setting) -> None:
    """Add rows to the table; a name is declared once."""
    for row in rows:
        if not row.name.startswith(PREFIX):
            raise ValueError(f"{row.name} must start with {PREFIX}")
        _table[row.name] = row


def table() -> tuple[Setting, ...]:
    """All declared settings, by name."""
    return tuple(_table[name] for name in sorted(_table))


def value(name: str) -> Any:
    """The present value of a declared setting; KeyError for a name that no app declared."""
    return getattr(settings, name, _table[name].default)


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Values for every declared setting that the environment names.

    Raises ImproperlyConfigured for a name with the prefix that no app declared, and for a value that does not parse.
    """
    found: dict[str, Any] = {}
    for name in sorted(environ):
        if not name.startswith(PREFIX):
            continue
        row = _table.get(name)
        if row is None:
            raise ImproperlyConfigured(f"Unknown setting {name} in the environment. {_suggestion(name)}")
        try:
            found[name] = row.read(environ[name])
        except ValueError as error:
            raise ImproperlyConfigured(f"{name}: {error}. {row.help}") from None
    return found


def _suggestion(name: str) -> str:
    """The declared name that was probably meant; all of them when nothing comes near."""
    near = difflib.get_close_matches(name, _table, n=1, cutoff=0.7)
    return f"Did you mean {near[0]}?" if near else f"Known: {', '.join(sorted(_table))}."


def read_bool(text: str) -> bool:
    """`1`, `true`, `yes`, `on` and their opposites, in any case."""
    word = text.strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off", ""}:
        return False
    raise ValueError(f"{text!r} is not a yes or no (use 1 or 0)")


def read_positive_int(text: str) -> int:
    """A whole number of at least 1."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def read_seconds(text: str) -> float:
    """Seconds, zero or more."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ValueError(f"{text!r} is not a number of seconds")
    return number


def read_lifetime(text: str) -> float:
    """Seconds, more than zero and at most a hundred years: what a store takes as a time to live."""
    seconds = read_seconds(text)
    if not 0 < seconds <= 100 * 365 * 86400:
        raise ValueError(f"{text!r} is not a lifetime; it is more than 0 seconds and at most 100 years")
    return seconds


def read_list(text: str) -> list[str]:
    """Parts between colons or commas, trimmed, empty ones dropped."""
    return [part.strip() for part in text.replace(",", ":").split(":") if part.strip()]


def read_synchronous(text: str) -> str:
    """FULL or NORMAL."""
    word = text.strip().upper()
    if word not in {"FULL", "NORMAL"}:
        raise ValueError(f"{text!r} is neither FULL nor NORMAL")
    return word


declare(
    Setting(
        name="KAMPONG_TESTING",
        default=False,
        read=read_bool,
        help="Opens the doors that only tests may use: the shifted clock and named crash points.",
    ),
    Setting(
        name="KAMPONG_CLOCK_FILE",
        default="",
        help="With KAMPONG_TESTING: a file with the number of seconds by which every process shifts its clock.",
    ),
    Setting(
        name="KAMPONG_FAULTS",
        default="",
        help="With KAMPONG_TESTING: named points at which a test kills, stops or delays the process.",
    ),
    Setting(
        name="KAMPONG_SQLITE_SYNCHRONOUS",
        default="FULL",
        read=read_synchronous,
        help="SQLite only: FULL survives power loss, NORMAL survives a crash of the process and is faster.",
    ),
)
