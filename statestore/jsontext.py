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
_SIMPLE = {str, bool, type(None)}
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")).encode
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class _Refused(Exception):
    """Why, and on the way out the steps to the place, innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []


def dumps(value: Json, *, spare: int = 0) -> str:
    """The value as compact JSON text; raises NotJson with the path to what JSON or a database cannot keep.

    `spare` levels of nesting are not counted: those that a service's own record puts around the values it carries.
    """
    if _is_plain(value, -spare):
        text = _encode(value)
        # A NUL stands escaped in the text; so does the harmless text of an escaped NUL, which the slow way tells apart.
        if "\\u0000" not in text and (text.isascii() or not _SURROGATE.search(text)):
            return text
    parts: list[str] = []
    try:
        _write(value, parts, -spare)
    except _Refused as refused:
        raise NotJson("$" + "".join(reversed(refused.steps)), refused.reason) from None
    return "".join(parts)


def loads(text: str) -> Json:
    """The value of a text that `dumps` made; NaN and infinities are refused here too."""
    return json.loads(text, parse_constant=_refuse_constant)


def number_text(number: float) -> str:
    """A finite fraction in its shortest form: `3`, `0.5`, `1e+21`, `1e-7`; minus zero is `0`."""
    size = abs(number)
    if size < 1e16 and number.is_integer():
        return str(int(number))
    if 1e-4 <= size < 1e16:
        return repr(number)
    if 1e-6 <= size < 1e21:
        return format(Decimal(repr(number)), "f")
    digits, _, exponent = repr(number).partition("e")
    power = int(exponent)
    return f"{digits.removesuffix('.0')}e{'+' if power > 0 else '-'}{abs(power)}"


def _is_plain(value: Json, depth: int) -> bool:
    """Whether Python's own encoder, which is written in C, prints the value as this module would.

    Not so for anything refused, for fractions whose text differs from Python's, and for very long numbers.
    """
    kind = type(value)
    if kind is dict:
        return depth < MAX_NESTING and all(
            type(key) is str and (type(item) in _SIMPLE or _is_plain(item, depth + 1)) for key, item in value.items()
        )
    if kind is list:
        return depth < MAX_NESTING and all(type(item) in _SIMPLE or _is_plain(item, depth + 1) for item in value)
    if kind is int:
        return bool(value.bit_length() < 64)
    if kind is float:
        return 1e-4 <= abs(value) < 1e16 and not value.is_integer()
    return kind in _SIMPLE


def _write(value: Json, parts: list[str], depth: int) -> None:
    # Exact types: a subclass of str or int (an enum, a lazy text) would come back as something else.
    kind = type(value)
    if kind is str:
        parts.append(_text(value))
    elif value is None:
        parts.append("null")
    elif kind is bool:
        parts.append("true" if value else "false")
    elif kind is int:
        if not -_TOO_LONG < value < _TOO_LONG:
            raise _Refused(f"a whole number of more than {MAX_DIGITS} digits")
        parts.append(str(value))
    elif kind is float:
        if not math.isfinite(value):
            raise _Refused(f"{value} is not a JSON number")
        parts.append(number_text(value))
    elif kind is dict:
        _write_mapping(value, parts, depth + 1)
    elif kind is list:
        _write_list(value, parts, depth + 1)
    else:
        raise _Refused(f"a value of type {kind.__name__} is not JSON")


def _write_mapping(value: dict[Any, Any], parts: list[str], depth: int) -> None:
    _check_depth(depth)
    before = "{"
    for key, item in value.items():
        if type(key) is not str:
            raise _Refused(f"the key {key!r} is not text")
        parts += (before, _text(key), ":")
        try:
            _write(item, parts, depth)
        except _Refused as refused:
            refused.steps.append(f".{key}" if _PLAIN_NAME.match(key) else f"[{json.dumps(key)}]")
            raise
        before = ","
    parts.append("{}" if before == "{" else "}")


def _write_list(value: list[Any], parts: list[str], depth: int) -> None:
    _check_depth(depth)
    before = "["
    for index, item in enumerate(value):
        parts.append(before)
        try:
            _write(item, parts, depth)
        except _Refused as refused:
            refused.steps.append(f"[{index}]")
            raise
        before = ","
    parts.append("[]" if before == "[" else "]")


def _check_depth(depth: int) -> None:
    if depth > MAX_NESTING:
        raise _Refused(f"nested more than {MAX_NESTING} deep")


def _text(value: str) -> str:
    if "\0" in value:
        raise _Refused("a NUL character cannot be stored")
    if not value.isascii() and _SURROGATE.search(value):
        raise _Refused("half of a surrogate pair is not a character")
    return encode_basestring(value)


def _refuse_constant(name: str) -> Json:
    raise NotJson("$", f"{name} is not a JSON number")
