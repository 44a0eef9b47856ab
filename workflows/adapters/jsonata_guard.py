"""JSONata under the limits of engine semantics 8, failures located and in words. Runs in the evaluator's child only.

The tree is walked here and not in the library, which counts nothing, and which answers some operators other than
JSONata does. Its functions are put right in jsonata_natives.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.utils import Utils

from workflows.adapters import jsonata_values as values
from workflows.adapters.jsonata_lists import Lists
from workflows.adapters.jsonata_steps import (
    DEPTH,
    FUNCTION,
    ITEMS,
    TEXT,
    Problem,
    meter,
    out_of_steps,
    refuse_long_list,
)
from workflows.spec import jsonata_parser

_REASON_LIMIT: Final = 300
_JList: Final = Utils.JList


class Guarded(Lists):
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
        self._depth = 0

    def run(self, scope: dict[str, Any]) -> Any:
        """The raw result for this scope, in which null is NULL; None when the expression selects nothing."""
        self._depth = 0
        Jsonata.CURRENT.jsonata = self
        # Fresh bindings each time: without them a top-level `$x := ...` stays for the next evaluation.
        return self.evaluate(scope, {})

    def get_per_thread_instance(self) -> Guarded:
        return self

    def eval(self, expr: Any, input: Any, environment: Any) -> Any:
        meter.left -= 1
        if meter.left < 0:
            raise _at(expr, out_of_steps())
        self._depth += 1
        if self._depth > DEPTH:
            raise _at(expr, Problem(f"calls are nested more than {DEPTH} deep (a recursion without an end?)"))
        saved = self.environment
        self.environment = environment
        try:
            result = _EVALUATORS[expr.type](self, expr, input, environment)
            if expr.predicate is not None:
                for item in expr.predicate:
                    result = self.evaluate_filter(item.expr, result, environment)
            if expr.group is not None and expr.type != "path":
                result = self.evaluate_group_expression(expr.group, result, environment)
        except Problem as problem:
            raise _at(expr, problem) from problem.__cause__
        except Exception as error:  # the library lets anything out, from KeyError to MemoryError
            raise Problem(reason_of(error), _located(error, expr)) from error
        finally:
            self.environment = saved
        self._depth -= 1
        return _finished(result, expr)

    def evaluate_lambda(self, expr: Any, input: Any, environment: Any) -> Any:
        """A function."""
        meter.charge(FUNCTION)
        return super().evaluate_lambda(expr, input, environment)

    # Operators ---------------------------------------------------------------------------------------------

    def evaluate_includes_expression(self, lhs: Any, rhs: Any) -> bool:
        """`in`, with true and 1 kept apart."""
        if lhs is None or rhs is None:
            return False
        among = rhs if isinstance(rhs, list) else [rhs]
        meter.items(among)
        return any(values.equal(item, lhs) for item in among)

    def evaluate_equality_expression(self, lhs: Any, rhs: Any, op: str) -> bool:
        """`=` and `!=`: false when a side is nothing."""
        if lhs is None or rhs is None:
            return False
        return values.equal(lhs, rhs) is (op == "=")

    def evaluate_comparison_expression(self, lhs: Any, rhs: Any, op: str) -> Any:
        """`<` and its like are the library's, charged for."""
        if isinstance(lhs, str):
            meter.text(lhs)
        return super().evaluate_comparison_expression(lhs, rhs, op)

    def evaluate_numeric_expression(self, lhs: Any, rhs: Any, op: str) -> Any:
        """`%` keeps the fraction; the rest is the library's."""
        if op == "%" and Utils.is_numeric(lhs) and Utils.is_numeric(rhs):
            if rhs == 0:
                raise ZeroDivisionError
            return Utils.convert_number(math.fmod(float(lhs), float(rhs)))
        return super().evaluate_numeric_expression(lhs, rhs, op)

    def evaluate_string_concat(self, lhs: Any, rhs: Any) -> str:
        """`&`, charged for."""
        result = super().evaluate_string_concat(lhs, rhs)
        meter.text(result)
        return str(result)

    def evaluate_range_expression(self, lhs: Any, rhs: Any) -> Any:
        """`..` as a list: the library's lazy one has a wrong length."""
        found = super().evaluate_range_expression(_integer(lhs), _integer(rhs))
        if found is None:
            return None
        refuse_long_list(found.b - found.a)
        meter.charge((found.b - found.a) // 8)
        return Utils.create_sequence_from_iter(range(found.a, found.b))


def _integer(value: Any) -> Any:
    """A whole number as an integer, which one beyond the exact fractions is not."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _finished(result: Any, expr: Any) -> Any:
    """A node's result within its bounds; a sequence of one as what is in it, an empty one as nothing."""
    if isinstance(result, str):
        if len(result) > TEXT:
            raise Problem(f"a text longer than {TEXT} characters was made", _position(expr))
    elif isinstance(result, list):
        if len(result) > ITEMS:
            raise Problem(f"a list of more than {ITEMS} items was made", _position(expr))
        if isinstance(result, _JList) and result.sequence and not result.tuple_stream:
            if expr.keep_array:
                result.keep_singleton = True
            if not result:
                return None
            if len(result) == 1 and not result.keep_singleton:
                return result[0]
    return result


_Evaluator = Callable[[Guarded, Any, Any, Any], Any]
_EVALUATORS: Final[dict[str, _Evaluator]] = {
    "path": lambda guarded, expr, input, frame: guarded.evaluate_path(expr, input, frame),
    "binary": lambda guarded, expr, input, frame: guarded.evaluate_binary(expr, input, frame),
    "unary": lambda guarded, expr, input, frame: guarded.evaluate_unary(expr, input, frame),
    "name": lambda guarded, expr, input, frame: guarded.evaluate_name(expr, input, frame),
    "string": lambda guarded, expr, input, frame: values.joined(expr.value),
    "number": lambda guarded, expr, input, frame: expr.value,
    "value": lambda guarded, expr, input, frame: values.NULL if expr.value is None else expr.value,
    "wildcard": lambda guarded, expr, input, frame: guarded.evaluate_wildcard(expr, input),
    "descendant": lambda guarded, expr, input, frame: guarded.evaluate_descendants(expr, input),
    "parent": lambda guarded, expr, input, frame: frame.lookup(expr.slot.label),
    "condition": lambda guarded, expr, input, frame: guarded.evaluate_condition(expr, input, frame),
    "block": lambda guarded, expr, input, frame: guarded.evaluate_block(expr, input, frame),
    "bind": lambda guarded, expr, input, frame: guarded.evaluate_bind_expression(expr, input, frame),
    "function": lambda guarded, expr, input, frame: guarded.evaluate_function(expr, input, frame, Utils.NONE),
    "variable": lambda guarded, expr, input, frame: guarded.evaluate_variable(expr, input, frame),
    "lambda": lambda guarded, expr, input, frame: guarded.evaluate_lambda(expr, input, frame),
    "partial": lambda guarded, expr, input, frame: guarded.evaluate_partial_application(expr, input, frame),
    "apply": lambda guarded, expr, input, frame: guarded.evaluate_apply_expression(expr, input, frame),
    "transform": lambda guarded, expr, input, frame: guarded.evaluate_transform_expression(expr, input, frame),
}


# Failures ----------------------------------------------------------------------------------------------------


def _at(expr: Any, problem: Problem) -> Problem:
    """The problem, placed at this node when no inner one has placed it."""
    if problem.position is None:
        problem.position = _position(expr)
    return problem


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
