"""How an expected value is compared with a found one: equal, subset, words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from workflows.engine import jsontext

Handler: TypeAlias = Callable[[str, Any, Any], None]


class Unmet(AssertionError):
    """The product did something else than the case says."""


class CaseError(Exception):
    """The case holds something that this runner does not understand; it would go unchecked."""


def shown(value: Any) -> str:
    """The value for a reader, cut."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) < 600 else text[:600] + "..."


def equal(where: str, expected: Any, found: Any) -> None:
    """The same JSON: true is not 1, 3.0 is 3."""
    if not jsontext.same(expected, found):
        raise Unmet(f"{where}: expected {shown(expected)}, found {shown(found)}")


def subset(where: str, expected: Any, found: Any) -> None:
    """Each given key matches; lists item by item with equal length; scalars exactly."""
    if isinstance(expected, Mapping):
        if not isinstance(found, Mapping):
            raise Unmet(f"{where}: expected a mapping, found {shown(found)}")
        for key, wanted in expected.items():
            if key not in found:
                raise Unmet(f"{where}.{key}: is missing in {shown(found)}")
            subset(f"{where}.{key}", wanted, found[key])
    elif isinstance(expected, list):
        each(where, expected, found, subset)
    else:
        equal(where, expected, found)


def each(where: str, expected: list[Any], found: Any, match: Handler) -> None:
    """Item by item, complete and in order."""
    if not isinstance(found, list) or len(found) != len(expected):
        raise Unmet(f"{where}: expected {len(expected)} items {shown(expected)}, found {shown(found)}")
    for number, (wanted, item) in enumerate(zip(expected, found, strict=True)):
        match(f"{where}[{number}]", wanted, item)


def in_any_order(where: str, expected: list[Any], found: list[Any], match: Handler) -> None:
    """Each expected item has a found one of its own, and none is left over."""
    rest = list(found)
    for wanted in expected:
        rest.remove(_first(where, wanted, rest, match))
    if rest:
        raise Unmet(f"{where}: not expected: {shown(rest)}")


def _first(where: str, wanted: Any, items: list[Any], match: Handler) -> Any:
    for item in items:
        try:
            match(where, wanted, item)
        except Unmet:
            continue
        return item
    raise Unmet(f"{where}: nothing left fits {shown(wanted)}")


def mentions(where: str, words: Iterable[str], text: str) -> None:
    """All words occur, in any case."""
    missing = [word for word in words if str(word).casefold() not in text.casefold()]
    if missing:
        raise Unmet(f"{where}: {missing} not in {shown(text)}")


def lacks(where: str, words: Iterable[str], text: str) -> None:
    """None of the words occurs, in any case."""
    there = [word for word in words if str(word).casefold() in text.casefold()]
    if there:
        raise Unmet(f"{where}: {there} in {shown(text)}")


def in_order(where: str, words: Iterable[str], text: str) -> None:
    """All words occur, each behind the one before it; exactly as written."""
    place = 0
    for word in words:
        found = text.find(word, place)
        if found < 0:
            raise Unmet(f"{where}: {word!r} does not follow in {shown(text)}")
        place = found + len(word)


def absent(where: str, key: str, wanted: Any, found: Mapping[str, Any]) -> None:
    """`no_output: true` and the like: the key must not be there. Saying false means nothing, so it is refused."""
    if wanted is not True:
        raise CaseError(f"{where}: only `true` can be said here")
    if key in found:
        raise Unmet(f"{where}: expected none, found {shown(found[key])}")


def by_key(where: str, expected: Mapping[str, Any], found: Any, handlers: Mapping[str, Handler]) -> None:
    """Each expected key by its handler; CaseError for a key without one."""
    for key, wanted in expected.items():
        if key not in handlers:
            raise CaseError(f"{where}: this runner does not know the expectation {key}")
        handlers[key](f"{where}.{key}", wanted, found)
