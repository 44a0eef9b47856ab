"""The store's JSON text: strict in, the same value out.

A whole number keeps all its digits. A fraction prints as JSON prints it, so one without a fractional part comes back as
a whole number (3.0 is 3, minus zero is 0). Everything else comes back as it went in, or is refused with its path.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from statestore.errors import NotJson

#: None, bool, int, float, str, list of Json, dict of str to Json.
Json: TypeAlias = Any

MAX_NESTING = 200
#: Python itself refuses to print or read a longer whole number.
MAX_DIGITS = 4300
_TOO_LONG = 10**MAX_DIGITS
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


def dumps(value: Json) -> str:
    """The value as compact JSON text; raises NotJson with the path to what JSON or a database cannot keep."""
    parts: list[str] = []
    _write(value, parts, "$", 0)
    return "".join(parts)


def loads(text: str) -> Json:
    """The value of a text that `dumps` made; NaN and infinities are refused here too."""
    return json.loads(text, parse_constant=_refuse_constant)


def number_text(number: float) -> str:
    """A finite fraction in its shortest form: `3`, `0.5`, `1e+21`, `1e-7`; minus zero is `0`."""
    if number == 0:
        return "0"
    if 1e-6 <= abs(number) < 1e21:
        text = format(Decimal(repr(number)), "f")
        return text.removesuffix(".0")
    digits, _, exponent = repr(number).partition("e")
    power = int(exponent)
    return f"{digits.removesuffix('.0')}e{'+' if power > 0 else '-'}{abs(power)}"


def _write(value: Json, parts: list[str], path: str, depth: int) -> None:
    # Exact types: a subclass of str or int (an enum, a lazy text) would come back as something else.
    kind = type(value)
    if kind is str:
        parts.append(_text(value, path))
    elif value is None:
        parts.append("null")
    elif kind is bool:
        parts.append("true" if value else "false")
    elif kind is int:
        parts.append(_whole(value, path))
    elif kind is float:
        if not math.isfinite(value):
            raise NotJson(path, f"{value} is not a JSON number")
        parts.append(number_text(value))
    elif kind is dict:
        _write_mapping(value, parts, path, depth + 1)
    elif kind is list:
        _write_list(value, parts, path, depth + 1)
    else:
        raise NotJson(path, f"a value of type {kind.__name__} is not JSON")


def _write_mapping(value: dict[Any, Any], parts: list[str], path: str, depth: int) -> None:
    _check_depth(path, depth)
    before = "{"
    for key, item in value.items():
        if type(key) is not str:
            raise NotJson(path, f"the key {key!r} is not text")
        parts += (before, _text(key, path), ":")
        _write(item, parts, _at(path, key), depth)
        before = ","
    parts.append("{}" if before == "{" else "}")


def _write_list(value: list[Any], parts: list[str], path: str, depth: int) -> None:
    _check_depth(path, depth)
    before = "["
    for index, item in enumerate(value):
        parts.append(before)
        _write(item, parts, f"{path}[{index}]", depth)
        before = ","
    parts.append("[]" if before == "[" else "]")


def _check_depth(path: str, depth: int) -> None:
    if depth > MAX_NESTING:
        raise NotJson(path[:200], f"nested more than {MAX_NESTING} deep")


def _text(value: str, path: str) -> str:
    if "\0" in value:
        raise NotJson(path, "a NUL character cannot be stored")
    if _SURROGATE.search(value):
        raise NotJson(path, "half of a surrogate pair is not a character")
    return encode_basestring(value)


def _whole(value: int, path: str) -> str:
    if not -_TOO_LONG < value < _TOO_LONG:
        raise NotJson(path, f"a whole number of more than {MAX_DIGITS} digits")
    return str(value)


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if _PLAIN_NAME.match(key) else f"{path}[{json.dumps(key)}]"


def _refuse_constant(name: str) -> Json:
    raise NotJson("$", f"{name} is not a JSON number")
