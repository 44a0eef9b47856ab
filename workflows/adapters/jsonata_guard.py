"""JSONata under the limits of engine semantics 8, and with its library's errors put right. Runs in the child only.

The library is changed in place here (`correct_library`), which is why no other process may import this module for use:
the child evaluates one expression at a time and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from jsonata.functions import Functions
from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.parser import Parser
from jsonata.signature import Signature
from jsonata.utils import Utils

from workflows.engine import jsontext
from workflows.spec import jsonata_parser

DEPTH: Final = 400
NODES: Final = 2_000_000
TEXT: Final = 1_000_000
ITEMS: Final = 200_000
COMPARED: Final = 10_000
_REASON_LIMIT: Final = 300
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?")
_PREFIXED = re.compile(r"0([xX][0-9A-Fa-f]+|[oO][0-7]+|[bB][01]+)")

NULL: Final = Utils.NULL_VALUE
_library_pad: Final = Functions.pad
_library_symbol: Final = Signature.get_symbol


class Problem(BaseException):
    """The evaluation ends here. Not an Exception, so that nothing in the library takes it for its own."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class Guarded(Jsonata):  # type: ignore[misc]  # the library has no types
    """A compiled expression whose every node is counted, bounded and, when it fails, located."""

    def __init__(self, source: str) -> None:
        """Compile a source; jsonata_parser.SyntaxFault when it is not JSONata."""
        # Not the library's own start: it would parse with the library's own parser.
        self.ast = jsonata_parser.parse(source)
        self.parser = jsonata_parser.Parser()
        self.errors = None
        self.environment = self.create_frame(Jsonata.static_frame)
        self.input: Any = None
        self.timestamp = 0
        self.set_validate_input(False)
        self.set_output_convert_nulls(False)
        self._nodes = self._depth = 0

    def run(self, scope: dict[str, Any]) -> Any:
        """The raw result for this scope, in which null is NULL; None when the expression selects nothing."""
        self._nodes = self._depth = 0
        Jsonata.CURRENT.jsonata = self
        # Fresh bindings each time: without them a top-level `$x := ...` stays for the next evaluation.
        return self.evaluate(scope, {})

    def get_per_thread_instance(self) -> Guarded:
        return self

    def eval(self, expr: Any, input: Any, environment: Any) -> Any:
        self._nodes += 1
        self._depth += 1
        if self._depth > DEPTH:
            raise Problem(f"calls are nested more than {DEPTH} deep (a recursion without an end?)", _position(expr))
        if self._nodes > NODES:
            raise Problem(f"more than {NODES} nodes were evaluated", _position(expr))
        saved = self.input, self.environment
        try:
            result = self._eval(expr, input, environment)
        except Problem as problem:
            if problem.position is None:
                problem.position = _position(expr)
            raise
        except Exception as error:  # the library lets anything out, from KeyError to MemoryError
            raise Problem(reason_of(error), _located(error, expr)) from error
        finally:
            self.input, self.environment = saved
        self._depth -= 1
        return _bounded(result, expr)

    def evaluate_includes_expression(self, lhs: Any, rhs: Any) -> bool:
        """`in`, with true and 1 kept apart."""
        if lhs is None or rhs is None:
            return False
        return any(Utils.is_deep_equal(item, lhs) for item in (rhs if isinstance(rhs, list) else [rhs]))

    def evaluate_numeric_expression(self, lhs: Any, rhs: Any, op: str) -> Any:
        """`%` keeps the fraction; the rest is the library's."""
        if op == "%" and Utils.is_numeric(lhs) and Utils.is_numeric(rhs):
            return Utils.convert_number(math.fmod(float(lhs), float(rhs)))
        return super().evaluate_numeric_expression(lhs, rhs, op)


def _bounded(result: Any, expr: Any) -> Any:
    if isinstance(result, str):
        if len(result) > TEXT:
            raise Problem(f"a text longer than {TEXT} characters was made", _position(expr))
    elif isinstance(result, list):
        # A range knows its ends only; its own length is off by one.
        size = result.b - result.a if isinstance(result, Utils.RangeList) else len(result)
        if size > ITEMS:
            raise Problem(f"a list of more than {ITEMS} items was made", _position(expr))
    return result


# Failures ----------------------------------------------------------------------------------------------------


def _position(expr: Any) -> int | None:
    position = getattr(expr, "position", None)
    return position if isinstance(position, int) and position > 0 else None


def _located(error: Exception, expr: Any) -> int | None:
    """The innermost node's position. What the error says comes second: natives put other numbers there."""
    position = _position(expr)
    if position is None and isinstance(error, JException) and isinstance(error.location, int) and error.location > 0:
        return error.location
    return position


def reason_of(error: Exception) -> str:
    """What went wrong, in words, whatever the library raised."""
    if isinstance(error, JException):
        return _cut(_library_message(error))
    if isinstance(error, RecursionError):
        return "the expression is nested too deeply"
    if isinstance(error, MemoryError):
        return "it needs more memory than an expression may use"
    if isinstance(error, ArithmeticError):
        return "a number is out of range (a division by zero?)"
    return _cut(f"a value does not fit the operation ({error})")


def _library_message(error: JException) -> str:
    if error.error in ("T1005", "T1007") and error.current:
        return f"{error.current} is not a function. Did you mean ${error.current}?"
    if error.error in ("T1006", "T1008") and error.current:
        return f"{error.current} is not a function"
    if error.error == "D1002":
        return "a value that is not a number cannot be negated"
    # The library was translated from another language and calls functions objects.
    return re.sub(r"\bObject\b", "function", str(error))


def _cut(text: str) -> str:
    return text if len(text) <= _REASON_LIMIT else text[:_REASON_LIMIT] + "..."


# Values ------------------------------------------------------------------------------------------------------


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
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if _is_function(value):
        raise Problem("the result is a function")
    if isinstance(value, str) and not value.isascii():
        # Two `\u` escapes of one character arrive as its two halves.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return value


def _is_function(value: Any) -> bool:
    return bool(Utils.is_function(value)) or isinstance(value, Parser.Symbol) or bool(Functions.is_regex(value))


# The library, put right ----------------------------------------------------------------------------------------


def correct_library() -> None:
    """Replace the functions that are unbounded, or that answer other than JSONata does."""
    Jsonata.Frame.lookup = _lookup
    Signature.get_symbol = _symbol
    Utils.convert_number = staticmethod(_converted)
    natives: dict[str, Callable[..., Any]] = {
        "string": _string,
        "clone": _clone,
        "number": _number,
        "pad": _pad,
        "sort": _sort,
        "distinct": _distinct,
        "lowercase": lambda text: None if text is None else _text(text).lower(),
        "count": lambda items: 0 if items is None else len(items),
    }
    for name, method in natives.items():
        Jsonata.static_frame.lookup(name).method = method
    # The operators `&` and `|...|` reach these two directly.
    Functions.string = staticmethod(_string)
    Functions.function_clone = staticmethod(_clone)


def _lookup(frame: Any, name: str) -> Any:
    """A variable's value; in a loop, as frames nest as deep as calls do."""
    while frame is not None:
        value = frame.bindings.get(name, Utils.NONE)
        if value is not Utils.NONE:
            return value
        frame = frame.parent
    return None


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


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise JException("T0410", -1, 1, "lowercase")
    return value


def _string(value: Any, prettify: Any = None) -> str | None:
    if isinstance(value, Utils.JList) and value.outer_wrapper:
        value = value[0]
    if value is None or isinstance(value, str):
        return value
    if _is_function(value):
        return ""
    printable = _printable(value)
    return jsontext.dumps_pretty(printable) if prettify is True else jsontext.dumps(printable)


def _printable(value: Any) -> Any:
    """Fractions with 15 digits, functions as empty text: what JSONata prints."""
    if isinstance(value, float):
        return float(f"{value:.15g}")
    if value is NULL:
        return None
    if isinstance(value, dict):
        return {key: _printable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_printable(item) for item in value]
    return "" if _is_function(value) else value


def _clone(value: Any) -> Any:
    """A deep copy that keeps every digit, and null."""
    if isinstance(value, dict):
        return {key: _clone(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clone(item) for item in value]
    return value


def _number(value: Any) -> Any:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and _PREFIXED.fullmatch(value):
        return int(value, 0)
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return Utils.convert_number(float(value))
    raise JException("D3030", -1, value)


def _pad(text: Any, width: Any, char: Any) -> Any:
    if isinstance(width, int | float) and abs(width) > TEXT:
        raise Problem(f"$pad would make a text longer than {TEXT} characters")
    return _library_pad(text, width, char)


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
        first.setdefault(_identity(item), item)
    kept = first.values()
    return Utils.create_sequence_from_iter(kept) if isinstance(items, Utils.JList) else list(kept)


def _identity(value: Any) -> Any:
    """Equal for equal JSON values: numbers by value, apart from booleans; mappings whatever their order."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dict):
        return ("object", frozenset((key, _identity(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(_identity(item) for item in value))
    return value
