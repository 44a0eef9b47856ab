"""JSON values as text and back, strictly: the one place that says how a number prints (engine semantics 1, design 4).

Numbers print as ECMAScript prints them (`3.0` is `3`, `1e-07` is `1e-7`), integer literals keep all their digits,
non-ASCII characters stay themselves, and nothing that is not JSON passes in either direction.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring
from typing import Any

from workflows.engine.values import NOTHING, Json

MAX_NESTING = 200
#: Levels that a stored record of ours may put around a value that is itself nested as deep as any may be.
RECORD_LEVELS = 4
#: Python refuses to turn longer integers into text or back.
_MAX_INTEGER_BITS = 14_000
_SURROGATE = re.compile("[\ud800-\udfff]")
#: What a text must hold for its parsed form to need a second look (`loads`).
_SUSPECT = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)|[\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class NotJson(ValueError):
    """The value is no JSON value; `path` says where in it, `reason` says why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


# Numbers -----------------------------------------------------------------------------------------------------


def number_text(number: int | float) -> str:
    """The shortest text of a number, without a trailing `.0`: `3`, `-7`, `0.5`, `1e+21`, `1e-7`."""
    if isinstance(number, int):
        return int.__repr__(number)
    if not math.isfinite(number):
        raise NotJson("", f"{number} is not a JSON number")
    text = float.__repr__(number)
    if "e" not in text:
        return _without_fraction(text)
    sign = "-" if text[0] == "-" else ""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    digits = mantissa.replace(".", "")
    point = int(exponent) + 1
    if 0 < point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{mantissa}e{int(exponent):+d}"


def _without_fraction(text: str) -> str:
    """`3.0` as `3`, minus zero as `0`."""
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


# Out ---------------------------------------------------------------------------------------------------------


def dumps(value: Json) -> str:
    """Compact JSON text, keys in the order they were written. Mapping entries holding nothing are left out."""
    return _READY.encode(value) if _is_ready(value) else _written(value, _in_order)


def canonical(value: Json) -> str:
    """Compact JSON text with the keys of every mapping sorted: equal values give equal text."""
    return _READY_SORTED.encode(value) if _is_ready(value) else _written(value, _sorted)


def dumps_pretty(value: Json) -> str:
    """JSON text indented by two blanks, for people."""
    pieces: list[str] = []
    _write_pretty(value, pieces.append, "\n")
    return "".join(pieces)


def as_text(value: Json) -> str:
    """A value inside a text: text as it is, number and boolean as JSON prints them, everything else as compact JSON."""
    return value if isinstance(value, str) else dumps(value)


#: Right, and fast, for values without nothing and without fractions that ECMAScript prints in another way than Python.
_READY = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_READY_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, sort_keys=True)
_Entries = Iterable[tuple[str, Json]]


def _written(value: Json, entries: Callable[[Mapping[Any, Json]], _Entries]) -> str:
    pieces: list[str] = []
    _write(value, pieces.append, entries)
    return "".join(pieces)


def _is_ready(value: Json) -> bool:
    """Whether the standard encoder prints the value as we do. Written for speed, as it looks at every value."""
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                return False
            kind = type(item)
            if kind is not str and kind is not int and not _is_ready(item):
                return False
        return True
    if kind is list:
        for item in value:
            kind = type(item)
            if kind is not str and kind is not int and not _is_ready(item):
                return False
        return True
    if kind is float:
        return 1e-4 <= abs(value) < 1e15 and not value.is_integer()
    return kind is str or kind is int or kind is bool or value is None


def _scalar(value: Json) -> str | None:
    """The text of a value that is no container; None for a container."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, Mapping | list | tuple):
        return None
    raise NotJson("", f"{_kind(value)} is not a JSON value")


def _in_order(value: Mapping[Any, Json]) -> _Entries:
    for key, item in value.items():
        if not isinstance(key, str):
            raise NotJson("", f"a key is {_kind(key)}, not text")
        if item is not NOTHING:
            yield key, item


def _sorted(value: Mapping[Any, Json]) -> _Entries:
    return sorted(_in_order(value), key=lambda entry: entry[0])


def _write(value: Json, write: Callable[[str], None], entries: Callable[[Mapping[Any, Json]], _Entries]) -> None:
    scalar = _scalar(value)
    if scalar is not None:
        write(scalar)
    elif isinstance(value, Mapping):
        mark = "{"
        for key, item in entries(value):
            write(f"{mark}{encode_basestring(key)}:")
            _write(item, write, entries)
            mark = ","
        write("{}" if mark == "{" else "}")
    else:
        mark = "["
        for item in value:
            write(mark)
            _write(item, write, entries)
            mark = ","
        write("[]" if mark == "[" else "]")


def _write_pretty(value: Json, write: Callable[[str], None], line: str) -> None:
    scalar = _scalar(value)
    deeper = line + "  "
    if scalar is not None:
        write(scalar)
    elif isinstance(value, Mapping):
        mark = "{"
        for key, item in _in_order(value):
            write(f"{mark}{deeper}{encode_basestring(key)}: ")
            _write_pretty(item, write, deeper)
            mark = ","
        write("{}" if mark == "{" else line + "}")
    else:
        mark = "["
        for item in value:
            write(mark + deeper)
            _write_pretty(item, write, deeper)
            mark = ","
        write("[]" if mark == "[" else line + "]")


# In ----------------------------------------------------------------------------------------------------------


def loads(text: str, *, spare: int = 0) -> Json:
    """The value that a JSON text stands for; NotJson for everything that `check` refuses, and for what is no JSON."""
    try:
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise NotJson("", f"nested deeper than {MAX_NESTING} levels") from error
    except json.JSONDecodeError as error:
        raise NotJson("", f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except NotJson:
        raise
    except ValueError as error:  # Python's limit of digits
        raise NotJson("", "not JSON: a whole number has too many digits") from error
    if text.count("[") + text.count("{") > MAX_NESTING or _SUSPECT.search(text):
        check(value, spare=spare)
    return value


def _constant(name: str) -> Json:
    raise NotJson("", f"not JSON: {name} is not a JSON number")


def _fraction(text: str) -> int | float:
    """A number written with a point or an exponent. `3.0` is the integer 3: there is one type of number."""
    number = float(text)
    if not math.isfinite(number):
        raise NotJson("", f"the number {text[:40]} is too large")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_float=_fraction)


# Rules -------------------------------------------------------------------------------------------------------


def check(value: Json, *, spare: int = 0) -> None:
    """Raise NotJson, naming the first place, unless the value may be stored.

    That is: JSON types only, no NaN or infinity, no lone surrogate, no NUL, nested at most 200 deep. `spare` levels are
    not counted: those that our own record puts around the values it carries.
    """
    _check(value, [], MAX_NESTING + spare)


def _check(value: Json, path: list[str | int], most: int) -> None:
    if isinstance(value, str):
        _check_text(value, path, "the text")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(_shown(path), f"{value} is not a JSON number")
    elif isinstance(value, int):
        if value.bit_length() > _MAX_INTEGER_BITS:
            raise NotJson(_shown(path), "the number is too large")
    elif isinstance(value, dict | list):
        if len(path) >= most:
            raise NotJson(_shown(path[:8]) + "...", f"nested deeper than {MAX_NESTING} levels")
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict):
                if not isinstance(key, str):
                    raise NotJson(_shown(path), f"a key is {_kind(key)}, not text")
                _check_text(key, path, "a key")
            path.append(key)
            _check(item, path, most)
            path.pop()
    elif value is not None:
        raise NotJson(_shown(path), f"{_kind(value)} is not a JSON value")


def _check_text(text: str, path: list[str | int], what: str) -> None:
    if "\x00" in text:
        raise NotJson(_shown(path), f"{what} holds a NUL character")
    if not text.isascii() and _SURROGATE.search(text):
        raise NotJson(_shown(path), f"{what} holds half of a surrogate pair")


def _shown(path: list[str | int]) -> str:
    parts = []
    for key in path:
        if isinstance(key, int):
            parts.append(f"[{key}]")
        elif _PLAIN_KEY.fullmatch(key):
            parts.append(f".{key}")
        else:
            parts.append(f"[{encode_basestring(key)}]")
    return "".join(parts).removeprefix(".")


def _kind(value: object) -> str:
    return "nothing" if value is NOTHING else f"a {type(value).__name__}"


def same(a: Json, b: Json) -> bool:
    """JSON equality: `true` is not `1`, `3` is `3.0`, the order of keys does not count; nothing equals only nothing."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return _same_number(a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(item, b[key]) for key, item in a.items())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b if isinstance(a, str) and isinstance(b, str) else a is b


def _same_number(a: int | float, b: int | float) -> bool:
    """An integer and a fraction are compared as fractions: `1e20`, printed and read again, is still the same."""
    if isinstance(a, int) == isinstance(b, int):
        return a == b
    try:
        return float(a) == float(b)
    except OverflowError:
        return False
