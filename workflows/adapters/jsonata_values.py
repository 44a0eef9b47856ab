"""JSON values as JSONata sees them: null apart from nothing, equality, copies, text. Runs in the evaluator's child."""

from __future__ import annotations

from typing import Any, Final

from jsonata.functions import Functions
from jsonata.parser import Parser
from jsonata.utils import Utils

from workflows.adapters.jsonata_steps import Problem, meter
from workflows.engine import jsontext

NULL: Final = Utils.NULL_VALUE


def with_nulls(value: Any) -> None:
    """JSON data, changed in place, as the library wants it: null is NULL, so that it never passes for nothing."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if item is None:
            value[key] = NULL
        elif isinstance(item, dict | list):
            with_nulls(item)


def plain(value: Any) -> Any:
    """A result as JSON; Problem for a function and for what JSON cannot say."""
    result = _plain(value)
    try:
        jsontext.check(result)
    except jsontext.NotJson as problem:
        raise Problem(f"the result is not JSON: {problem}") from problem
    return result


def _plain(value: Any) -> Any:
    if value is NULL or value is None:
        return None
    if isinstance(value, dict):
        meter.charge(2 + len(value))
        return {joined(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        meter.charge(1 + len(value) // 4)
        return [_plain(item) for item in value]
    if is_function(value):
        raise Problem("the result is a function")
    if isinstance(value, str):
        meter.text(value)
        return joined(value)
    return value


def joined(text: str) -> str:
    """Text whose surrogates are joined to characters: two `\\u` escapes of one character arrive as its halves."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def is_function(value: Any) -> bool:
    """Whether a value is a function of any kind."""
    return bool(Utils.is_function(value)) or isinstance(value, Parser.Symbol) or bool(Functions.is_regex(value))


def is_number(value: Any) -> bool:
    """Whether a value is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same; numbers by value, apart from booleans."""
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return False
        meter.items(left)
        return all(equal(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return False
        meter.items(left)
        return all(equal(value, right[key]) for key, value in left.items())
    if isinstance(left, str) and isinstance(right, str):
        meter.text(left)
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def clone(value: Any) -> Any:
    """A deep copy that keeps every digit, and null."""
    if isinstance(value, dict):
        meter.items(value, weight=2)
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, list):
        meter.items(value, weight=2)
        return [clone(item) for item in value]
    return value


def identity(value: Any) -> Any:
    """Equal for equal JSON values: numbers by value, apart from booleans; mappings whatever their order."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dict):
        meter.items(value, weight=4)
        return ("object", frozenset((key, identity(item)) for key, item in value.items()))
    if isinstance(value, list):
        meter.items(value, weight=4)
        return ("array", tuple(identity(item) for item in value))
    return value


def as_text(value: Any, *, indented: bool = False) -> str:
    """JSON as JSONata prints it: fractions with 15 digits, functions as empty text."""
    printable = _printable(value)
    return jsontext.dumps_pretty(printable) if indented else jsontext.dumps(printable)


def _printable(value: Any) -> Any:
    if isinstance(value, float):
        return value if value.is_integer() else float(f"{value:.15g}")
    if value is NULL:
        return None
    if isinstance(value, dict):
        meter.items(value, weight=8)
        return {key: _printable(item) for key, item in value.items()}
    if isinstance(value, list):
        meter.items(value, weight=8)
        return [_printable(item) for item in value]
    if isinstance(value, str):
        meter.text(value)
        return value
    return "" if is_function(value) else value
