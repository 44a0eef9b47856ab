"""JSONata's functions, put right where the library's are unbounded, uncounted, or answer other than JSONata does.

The library is changed in place (`correct_library`), which is why no process but the evaluator's child may import this
module for use: the child evaluates one expression at a time and nothing else.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from jsonata.functions import Functions
from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.signature import Signature
from jsonata.utils import Utils

from workflows.adapters import jsonata_lists as lists
from workflows.adapters import jsonata_values as values
from workflows.adapters.jsonata_steps import CALL, COMPARED, TEXT, Problem, meter, refuse_long_text
from workflows.adapters.jsonata_values import NULL

_DECIMAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?")
_PREFIXED: Final = re.compile(r"0([xX][0-9A-Fa-f]+|[oO][0-7]+|[bB][01]+)")
_TIMESTAMP: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d)?)?)?)?", re.ASCII
)
#: What a call costs by the size of its first argument and of its result: 1 for a copy of them. The first group looks at
#: no more of its argument than its type or one entry, the second tests the type of every item, the third is slow.
_WEIGHTS: Final = {
    **dict.fromkeys(("count", "exists", "lookup", "type", "boolean", "not", "append", "keys", "merge", "spread"), 0),
    **dict.fromkeys(("sum", "max", "min", "average", "join"), 8),
    **dict.fromkeys(("trim", "split", "encodeUrl", "encodeUrlComponent"), 4),
}
#: These read a picture or a date a character at a time.
_PICTURES: Final = frozenset({"formatNumber", "formatInteger", "parseInteger", "fromMillis", "toMillis"})
_PICTURE: Final = 60

_library_pad: Final = Functions.pad
_library_round: Final = Functions.round
_library_symbol: Final = Signature.get_symbol
_library_applied: Final = Functions.func_apply
_library_arity: Final = Functions.get_function_arity
_library_lookup: Final = Functions.lookup


def correct_library() -> None:
    """Replace what is unbounded, or answers other than JSONata does."""
    Jsonata.Frame.lookup = _variable
    Jsonata.JNativeFunction.call = _call
    Signature.get_symbol = _symbol
    Utils.convert_number = staticmethod(_converted)
    Utils.is_deep_equal = staticmethod(values.equal)
    natives: dict[str, Callable[..., Any]] = {
        "string": _string,
        "clone": values.clone,
        "number": _number,
        "pad": _pad,
        "sort": _sort,
        "distinct": _distinct,
        "append": lists.appended,
        "zip": lists.zipped,
        "spread": lists.spread,
        "keys": lists.keys,
        "merge": lists.merge,
        "join": _join,
        "replace": _replace,
        "round": _round,
        "floor": lambda number: _whole(number, math.floor),
        "ceil": lambda number: _whole(number, math.ceil),
        "formatNumber": _format_number,
        "toMillis": _to_millis,
        "lowercase": lambda text: None if text is None else _text(text, "lowercase").lower(),
        "count": lambda items: 0 if items is None else len(items),
    }
    for name, method in natives.items():
        Jsonata.static_frame.lookup(name).method = method
    # Operators reach these directly.
    Functions.string = staticmethod(_string)
    Functions.get_function_arity = staticmethod(_arity)
    Functions.func_apply = staticmethod(_applied)
    Functions.function_clone = staticmethod(values.clone)
    Functions.append = staticmethod(lists.appended)
    Functions.lookup = staticmethod(_looked_up)


def _variable(frame: Any, name: str) -> Any:
    """A variable's value; in a loop, as frames nest as deep as calls do."""
    hops = 0
    while frame is not None:
        value = frame.bindings.get(name, Utils.NONE)
        if value is not Utils.NONE:
            break
        hops += 1
        frame = frame.parent
    meter.left -= hops // 16
    return None if frame is None else value


def _call(native: Any, _input: Any, args: Sequence[Any]) -> Any:
    """A call of a function of the library, charged by the size of what goes in and of what comes out."""
    meter.charge(CALL)
    weight = _WEIGHTS.get(native.function_name, 1)
    if args and weight:
        meter.value(args[0], weight=weight)
    if native.function_name in _PICTURES:
        meter.charge(_PICTURE + sum(len(argument) for argument in args if isinstance(argument, str)))
    result = Functions._call(native.method, native.nargs, args)
    meter.value(result, weight=4 if native.function_name == "split" else 1)
    return result


def _arity(function: Any) -> int:
    """How many arguments `$map` and its like hand over: as many as the function takes, optional ones too."""
    if isinstance(function, Jsonata.JNativeFunction):
        return 1 if function.function_name == "string" else int(function.nargs)
    return int(_library_arity(function))


def _applied(function: Any, args: Sequence[Any]) -> Any:
    """A function called by another function; the library's own take no argument untested."""
    if isinstance(function, Jsonata.JNativeFunction):
        taken = args if function.function_name == "zip" else args[: _arity(function)]
        return function.call(None, function.validate(taken, None))
    return _library_applied(function, args)


def _symbol(signature: Any, value: Any) -> str:
    """The letter of a value's type in signatures, where null is `l` and not a missing argument."""
    return "l" if value is NULL else str(_library_symbol(signature, value))


def _converted(number: Any) -> Any:
    """A fraction without a fraction as an integer, as far as it is exact: `1e+21` is not twenty-two digits."""
    if not Utils.is_numeric(number):
        return None
    if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
        return int(number)
    return number


# Lists -------------------------------------------------------------------------------------------------------


def _looked_up(value: Any, key: str) -> Any:
    """A name's value in a mapping, or in each of a list's."""
    if isinstance(value, list):
        meter.items(value, weight=4)
    return _library_lookup(value, key)


class _Placed:
    """An item that goes before another when the comparator says that the other belongs after it."""

    def __init__(self, item: Any, comparator: Any) -> None:
        self.item = item
        self._comparator = comparator

    def __lt__(self, earlier: _Placed) -> bool:
        # JSONata swaps two neighbours when the comparator answers true for (first, second).
        return bool(Functions.to_boolean(Functions.func_apply(self._comparator, [earlier.item, self.item])))


def _sort(items: Sequence[Any] | None, comparator: Any = None) -> Any:
    if items is None or len(items) <= 1:
        return items
    if len(items) > COMPARED:
        raise Problem(f"$sort was given more than {COMPARED} items")
    if comparator is not None:
        return [placed.item for placed in sorted(_Placed(item, comparator) for item in items)]
    meter.items(items, weight=8)
    if not (all(isinstance(item, str) for item in items) or all(Utils.is_numeric(item) for item in items)):
        raise JException("D3070", -1)
    return sorted(items)


def _distinct(items: Any) -> Any:
    if not isinstance(items, list) or len(items) <= 1:
        return items
    if len(items) > COMPARED:
        raise Problem(f"$distinct was given more than {COMPARED} items")
    first: dict[Any, Any] = {}
    for item in items:
        first.setdefault(values.identity(item), item)
    kept = first.values()
    return Utils.create_sequence_from_iter(kept) if isinstance(items, Utils.JList) else list(kept)


# Texts and numbers -------------------------------------------------------------------------------------------


def _text(value: Any, function: str) -> str:
    if not isinstance(value, str):
        raise JException("T0410", -1, 1, function)
    return value


def _string(value: Any, prettify: Any = None) -> str | None:
    if isinstance(value, Utils.JList) and value.outer_wrapper:
        value = value[0]
    if value is None or isinstance(value, str):
        return value
    return "" if values.is_function(value) else values.as_text(value, indented=prettify is True)


def _number(value: Any) -> Any:
    if value is None or values.is_number(value):
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and _PREFIXED.fullmatch(value):
        return int(value, 0)
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return Utils.convert_number(float(value))
    raise JException("D3030", -1, value)


def _whole(number: Any, rounding: Callable[[float], int]) -> Any:
    """A fraction rounded; digits beyond those of a fraction would be made up."""
    if isinstance(number, float):
        whole = rounding(number)
        return whole if abs(whole) < 2**53 else float(whole)
    return number


def _round(number: Any, digits: Any) -> Any:
    if isinstance(digits, float) and not digits.is_integer():
        raise ValueError(f"$round to {digits} digits")
    return _library_round(number, None if digits is None else int(digits))


def _format_number(number: Any, picture: Any, options: Any) -> Any:
    """`$formatNumber`, which rounds a half to the even digit as `$round` does; the library rounds it up."""
    if values.is_number(number) and isinstance(picture, str):
        point = options.get("decimal-separator", ".") if isinstance(options, dict) else "."
        fraction = picture.partition(";")[0].partition(point)[2]
        if "e" not in picture:
            digits = sum(character in "0123456789#" for character in fraction)
            rounded = _library_round(number, digits + 2 * ("%" in picture) + 3 * ("‰" in picture))
            number = number if number < 0 and not rounded else rounded  # a negative number keeps its sign as zero
    return Functions.format_number(number, picture, options)


def _pad(text: Any, width: Any, char: Any) -> Any:
    if isinstance(width, int | float) and abs(width) > TEXT:
        raise Problem(f"$pad would make a text longer than {TEXT} characters")
    return _library_pad(text, width, char)


def _join(texts: Any, separator: Any) -> Any:
    if texts is None:
        return None
    between = "" if separator is None else separator
    refuse_long_text(sum(len(text) for text in texts) + len(between) * max(0, len(texts) - 1))
    return between.join(texts)


def _replace(text: Any, pattern: Any, replacement: Any, limit: Any) -> Any:
    """`$replace` of a text in a text; the library copies what is left of the text at each finding."""
    if text is None or pattern is None:
        return None
    _text(text, "replace"), _text(pattern, "replace")
    if pattern == "":
        raise JException("D3010", -1)
    if limit is not None and limit < 0:
        raise JException("D3011", -1)
    most = -1 if limit is None else int(-(-limit // 1))
    meter.text(text, weight=2)
    found = text.count(pattern)
    by = _text(replacement, "replace")
    refuse_long_text(len(text) + (found if most < 0 else min(found, most)) * (len(by) - len(pattern)))
    return text.replace(pattern, by, most)


def _to_millis(timestamp: Any, picture: Any) -> Any:
    """`$toMillis`; a time without a zone is UTC, wherever the process runs."""
    if timestamp is None:
        return None
    if picture is not None:
        return Functions.datetime_to_millis(timestamp, picture)
    read = _TIMESTAMP.fullmatch(timestamp)
    if read is None:
        raise JException("D3110", -1, timestamp)
    year, month, day, hour, minute, second, fraction, zone = read.groups()
    # A value that is no date (a 13th month) leaves this as a ValueError, which is an expression's failure too.
    moment = datetime.datetime(
        int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0),
        tzinfo=datetime.UTC,
    )  # fmt: skip
    offset = 0
    if zone not in (None, "Z"):
        offset = int(zone[:1] + "1") * (int(zone[1:3]) * 60 + int(zone[-2:]))
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    milliseconds = int((fraction or "0")[:3].ljust(3, "0"))
    return (since.days * 86_400 + since.seconds - offset * 60) * 1000 + milliseconds
