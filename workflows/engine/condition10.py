"""Conditions of a 1.0 spec: one comparison of a step's field with a literal (engine semantics 7)."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping

from workflows.engine import jsontext
from workflows.engine.references import field
from workflows.engine.values import Json, MaybeJson, Outputs
from workflows.spec.patterns import CONDITION_10

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_NUMERIC = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PREFIXED = re.compile(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+")
_INFINITIES = {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_ORDER: Mapping[str, Callable[[int | float, int | float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class ConditionError(ValueError):
    """The condition is no comparison, or reads a step that has not run; the message quotes it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def evaluate(expression: str, outputs: Outputs) -> bool:
    """Whether `STEP.FIELD OP LITERAL` holds."""
    shape = CONDITION_10.fullmatch(expression.strip())
    if shape is None:
        raise ConditionError(
            f'the condition "{expression}" is not of the form STEP.FIELD OP LITERAL, OP one of == != >= <= > <'
        )
    step, name, sign, right = shape.groups()
    if step not in outputs:
        raise ConditionError(
            f'the condition "{expression}" reads the step "{step}", which has no output yet; '
            "a condition can only read steps that come before it"
        )
    return _holds(field(outputs[step], name), sign, _literal(right.rstrip()))


def _holds(left: MaybeJson, sign: str, right: Json) -> bool:
    if sign == "==":
        return jsontext.same(left, right)
    if sign == "!=":
        return not jsontext.same(left, right)
    # With not-a-number on either side every order is false.
    return _ORDER[sign](_number(left), _number(right))


def _literal(text: str) -> Json:
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        return _decimal(text)
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        return text[1:-1]
    return text


def _decimal(text: str) -> int | float:
    """The number of a decimal text; an integer stays exact unless it is beyond every fraction."""
    number = float(text)
    is_integer = text.lstrip("+-").isdecimal()
    return int(text) if is_integer and math.isfinite(number) else number


def _number(value: MaybeJson) -> int | float:
    """The value as a number for an order operator, not-a-number where it has none."""
    if isinstance(value, bool | int | float):
        return value
    if value is None:
        return 0
    return _numeric(value.strip()) if isinstance(value, str) else math.nan


def _numeric(text: str) -> int | float:
    if not text:
        return 0
    if _NUMERIC.fullmatch(text):
        return _decimal(text)
    if _PREFIXED.fullmatch(text):
        return int(text, 0)
    return _INFINITIES.get(text, math.nan)
