"""Building blocks for what a value in a spec may look like (format 1).

A shape looks at a value, writes what is wrong to `Faults`, and returns the value cleaned: unknown keys dropped, whole
numbers as integers. What it returns for a value with hard faults is not to be used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from operator import ge, gt, le
from typing import Any, Protocol

from workflows.spec.errors import Path, clipped, listed
from workflows.spec.model import Json

MAX_WHOLE = 2**53 - 1
#: Loading stops at so many.
MOST_FAULTS = 10_000
#: More unknown keys than an author would read.
MOST_KEYS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """`hard` faults (format 1) stop the rules that need a sound shape."""

    path: Path
    message: str
    hard: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """An unknown key that an open mapping let pass, and the keys it knows."""

    path: Path
    known: tuple[str, ...]


class TooManyFaults(Exception):
    """Nobody would read on, and a made-up file could fill the memory with them."""


@dataclass(kw_only=True)
class Faults:
    """What was found so far."""

    found: list[Fault] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    def hard(self, path: Path, message: str) -> None:
        self._add(Fault(path=path, message=message, hard=True))

    def soft(self, path: Path, message: str) -> None:
        self._add(Fault(path=path, message=message, hard=False))

    def _add(self, fault: Fault) -> None:
        if len(self.found) >= MOST_FAULTS:
            raise TooManyFaults
        self.found.append(fault)

    def any_hard(self, since: int = 0) -> bool:
        return any(fault.hard for fault in self.found[since:])

    def take(self, other: Faults) -> None:
        self.found += other.found
        self.dropped += other.dropped


class Shape(Protocol):
    def __call__(self, value: Json, path: Path, faults: Faults, /) -> Json: ...


#: A check of a sound value; it writes soft faults.
Rule = Callable[[Any, Path, Faults], None]


def kind_of(value: Json) -> str:
    """A value's type in the words of messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number" if is_number(value) else "a number that is too large or not finite"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a mapping"


def is_number(value: Json) -> bool:
    """Whether a value is a number here: finite, also when it is held as a fraction, and not a boolean."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def is_whole(value: Json) -> bool:
    return is_number(value) and value == int(value)


def _name(path: Path) -> str:
    """How a message calls the value at a path: its key, or its place in a list."""
    return f'"{clipped(path[-1])}"' if path and isinstance(path[-1], str) else "the item"


def wrong_type(wanted: str, value: Json, path: Path, faults: Faults) -> None:
    faults.hard(path, f"{_name(path)} must be {wanted}, not {kind_of(value)}")


@dataclass(frozen=True, kw_only=True)
class Text:
    """Text, checked by `rules` when it is some."""

    non_empty: bool = False
    rules: tuple[Rule, ...] = ()

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        if not isinstance(value, str):
            wrong_type("a string", value, path, faults)
        elif self.non_empty and not value:
            faults.soft(path, f"{_name(path)} must not be empty")
        else:
            for rule in self.rules:
                rule(value, path, faults)
        return value


@dataclass(frozen=True, kw_only=True)
class Boolean:
    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        if not isinstance(value, bool):
            wrong_type("a boolean, true or false", value, path, faults)
        return value


@dataclass(frozen=True, kw_only=True)
class Number:
    """A finite number in a range; `above` is outside it, `least` and `most` are inside."""

    above: float | None = None
    least: float | None = None
    most: float | None = None
    whole: bool = False

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        wanted = "a whole number" if self.whole else "a number"
        if not is_number(value):
            found = "infinite or not a number" if isinstance(value, float) else kind_of(value)
            faults.hard(path, f"{_name(path)} must be {wanted}, not {found}")
            return value
        if self.whole and not is_whole(value):
            faults.hard(path, f"{_name(path)} must be a whole number, without a fraction")
            return value
        most = MAX_WHOLE if self.whole and self.most is None else self.most
        for bound, operator, words in (
            (self.above, gt, "above"),
            (self.least, ge, "at least"),
            (most, le, "at most"),
        ):
            if bound is not None and not operator(value, bound):
                faults.soft(path, f"{_name(path)} must be {words} {bound}")
        return int(value) if self.whole else value


@dataclass(frozen=True, kw_only=True)
class Word:
    """One of a few words."""

    words: tuple[str, ...]

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        if not isinstance(value, str) or value not in self.words:
            found = f'"{clipped(value)}"' if isinstance(value, str) else kind_of(value)
            faults.hard(path, f"{_name(path)} must be {one_of(self.words)}, not {found}")
        return value

    def missing(self, path: Path, faults: Faults) -> None:
        faults.hard(path, f"{_name(path)} is required: {one_of(self.words)}")


def one_of(words: Iterable[str]) -> str:
    quoted = [f'"{word}"' for word in words]
    return quoted[0] if len(quoted) == 1 else f"one of {', '.join(quoted)}"


@dataclass(frozen=True, kw_only=True)
class Anything:
    """Any JSON value; infinity and not-a-number are none."""

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        if isinstance(value, dict):
            for key, item in value.items():
                self(item, (*path, key), faults)
        elif isinstance(value, list):
            for at, item in enumerate(value):
                self(item, (*path, at), faults)
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and not is_number(value):
            faults.hard(path, f"{_name(path)} must be a number that JSON knows, not infinity or not-a-number")
        return value


@dataclass(frozen=True, kw_only=True)
class ListOf:
    item: Shape
    non_empty: bool = False

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        if not isinstance(value, list):
            wrong_type("a list", value, path, faults)
            return value
        if self.non_empty and not value:
            faults.soft(path, f"{_name(path)} must have at least one entry")
        return [self.item(item, (*path, at), faults) for at, item in enumerate(value)]


@dataclass(frozen=True, kw_only=True)
class MapOf:
    """A mapping from names to values of one shape. `name_problem` says what is wrong with a name; that is hard.

    The rules are asked once every name and value is well formed.
    """

    value: Shape
    name_problem: Callable[[str], str | None] = lambda _: None
    rules: tuple[Rule, ...] = ()

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        if not isinstance(value, dict):
            wrong_type("a mapping", value, path, faults)
            return value
        before = len(faults.found)
        for key in value:
            problem = self.name_problem(key)
            if problem:
                faults.hard((*path, key), problem)
        cleaned = {key: self.value(item, (*path, key), faults) for key, item in value.items()}
        if len(faults.found) == before:
            for rule in self.rules:
                rule(cleaned, path, faults)
        return cleaned


@dataclass(frozen=True, kw_only=True)
class Record:
    """A mapping with known keys. A closed one refuses others; an open one drops them.

    The rules are asked when there was no hard fault inside. `name` is for the editor's schema.
    """

    name: str
    keys: Mapping[str, Shape]
    required: frozenset[str] = frozenset()
    closed: bool = False
    rules: tuple[Rule, ...] = ()

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        if not isinstance(value, dict):
            wrong_type("a mapping", value, path, faults)
            return value
        before = len(faults.found)
        unknown = [key for key in value if key not in self.keys]
        if not self.closed:
            faults.dropped += [Dropped(path=(*path, key), known=tuple(self.keys)) for key in unknown]
        elif unknown:
            faults.hard(
                path, f"unknown key {', '.join(_guessed(unknown, self.keys))}; the keys here are {listed(self.keys)}"
            )
        cleaned = {}
        for key, shape in self.keys.items():
            if key in value:
                cleaned[key] = shape(value[key], (*path, key), faults)
            elif key in self.required:
                _missing(shape, (*path, key), faults)
        if not faults.any_hard(before):
            for rule in self.rules:
                rule(cleaned, path, faults)
        return {key: cleaned[key] for key in value if key in cleaned}


def _guessed(unknown: list[str], known: Iterable[str]) -> Iterator[str]:
    """Each unknown key with the nearest known one."""
    for key in unknown[:MOST_KEYS]:
        yield guess(key, known)
    if len(unknown) > MOST_KEYS:
        yield f"and {len(unknown) - MOST_KEYS} more"


def guess(key: str, known: Iterable[str]) -> str:
    """A key as a message names it, with the nearest known one if there is one."""
    name = clipped(key)
    near = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"{name} (did you mean {near[0]}?)" if near else name


def _missing(shape: Shape, path: Path, faults: Faults) -> None:
    if isinstance(shape, Word):
        shape.missing(path, faults)
    else:
        faults.hard(path, f"{_name(path)} is required")
