"""The values of a spec's vars for one run (format 4.2, engine semantics 12)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.spec.model import Spec, VarDecl
from workflows.spec.patterns import ENV_PLACEHOLDER, variable_is_secret
from workflows.spec.shapes import is_number

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: How much of a text that did not parse a problem shows.
_SHOWN = 120


class VarsError(ValueError):
    """Some declared vars have no usable value; `problems` has one sentence for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.message = "; ".join(problems)
        self.problems = tuple(problems)


class _Unfit(Exception):
    """A value is not what the declaration wants; says what was expected."""


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Where a value came from, in words, and the value; a secret one is not shown."""

    words: str
    value: Json
    secret: bool = False


def names_needed(spec: Spec, overrides: Mapping[str, Json]) -> tuple[str, ...]:
    """The environment variables that `resolve` will look at, each once, in declared order."""
    if spec.is_1_0:
        return ()
    names = (_reference(decl) for name, decl in spec.vars.items() if name not in overrides)
    return tuple(dict.fromkeys(name for name in names if name))


def resolve(spec: Spec, overrides: Mapping[str, Json], env: Mapping[str, str | None]) -> dict[str, Json]:
    """A value for every declared var, in declared order; VarsError with all problems when there is one.

    `env` has every name of `names_needed`, None where the variable is unset. Overrides for other names are ignored.
    """
    if spec.is_1_0:
        return {}
    values: dict[str, Json] = {}
    problems: list[str] = []
    for name, decl in spec.vars.items():
        try:
            source = _source(name, decl, overrides, env)
            values[name] = _value(decl, source)
        except _Unfit as problem:
            problems.append(f"vars.{name}: {problem}")
    if problems:
        raise VarsError(problems)
    return values


def secrets_in(spec: Spec, env: Mapping[str, str]) -> set[str]:
    """The texts of variables that look like secrets and are read by defaults, and the values that become of them."""
    texts: set[str] = set()
    for decl in () if spec.is_1_0 else spec.vars.values():
        variable = _reference(decl)
        text = env.get(variable) if variable and variable_is_secret(variable) else None
        if not text:
            continue
        texts.add(text)
        try:
            value = _FROM_TEXT[decl.type](text, decl)
        except _Unfit:
            continue
        texts.update(jsontext.as_text(item) for item in (value if isinstance(value, list) else [value]))
    return texts - {""}


def _reference(decl: VarDecl) -> str | None:
    """NAME when the default is exactly `${NAME}`."""
    found = ENV_PLACEHOLDER.fullmatch(decl.default) if decl.has_default and isinstance(decl.default, str) else None
    return found[1] if found else None


def _source(name: str, decl: VarDecl, overrides: Mapping[str, Json], env: Mapping[str, str | None]) -> _Source:
    if name in overrides:
        return _Source(words="the value given", value=overrides[name])
    if not decl.has_default:
        raise _Unfit(f"there is no default and no value was given; expected {_wanted(decl)}")
    variable = _reference(decl)
    if variable is None:
        return _Source(words="the default", value=decl.default)
    text = env.get(variable)
    if not text:
        raise _Unfit(f"the environment variable {variable} is not set or empty; expected {_wanted(decl)}")
    return _Source(words=f"the environment variable {variable}", value=text, secret=variable_is_secret(variable))


def _value(decl: VarDecl, source: _Source) -> Json:
    readers = _FROM_TEXT if isinstance(source.value, str) else _TYPED
    try:
        return readers[decl.type](source.value, decl)
    except _Unfit as error:
        if source.secret:
            # The detail may quote a part of it.
            raise _Unfit(f"{source.words} is not {_wanted(decl)}; its text is not shown") from None
        detail = f" ({error})" if str(error) else ""
        raise _Unfit(f"{source.words} {_quoted(source.value)} is not {_wanted(decl)}{detail}") from None


def _wanted(decl: VarDecl) -> str:
    if decl.type == "list":
        return "a list of numbers" if decl.items == "number" else "a list of strings"
    return f"a {decl.type}"


def _quoted(value: Json) -> str:
    try:
        text = jsontext.dumps(value)
    except jsontext.NotJson:
        text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


# Text, parsed as the declared type ---------------------------------------------------------------------------


def _number_text(text: str, decl: VarDecl) -> Json:
    text = text.strip()
    number = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise _Unfit
    return int(text) if _INTEGER.fullmatch(text) else number


def _list_text(text: str, decl: VarDecl) -> Json:
    items: Json
    if text.lstrip().startswith("["):
        try:
            items = jsontext.loads(text)
        except jsontext.NotJson as error:
            raise _Unfit(error.reason) from error
    else:
        items = [part for part in map(str.strip, text.split(",")) if part]
    return [_item(item, decl) for item in items]


def _item(item: Json, decl: VarDecl) -> Json:
    """An item of a list given as text: there, numbers and text stand for each other."""
    if isinstance(item, str):
        return _number_item(item, decl) if decl.items == "number" else item
    if not is_number(item):
        raise _Unfit(f"one item is {_quoted(item)}")
    return item if decl.items == "number" else jsontext.as_text(item)


def _number_item(text: str, decl: VarDecl) -> Json:
    try:
        return _number_text(text, decl)
    except _Unfit:
        raise _Unfit(f"one item is {_quoted(text)}") from None


# Typed values ------------------------------------------------------------------------------------------------


def _typed_number(value: Json, decl: VarDecl) -> Json:
    if not is_number(value):
        raise _Unfit
    return value


def _typed_string(value: Json, decl: VarDecl) -> Json:
    raise _Unfit


def _typed_list(value: Json, decl: VarDecl) -> Json:
    if not isinstance(value, list | tuple):
        raise _Unfit
    for item in value:
        if not (is_number(item) if decl.items == "number" else isinstance(item, str)):
            raise _Unfit(f"one item is {_quoted(item)}")
    return list(value)


_Reader = Callable[[Any, VarDecl], Json]
_FROM_TEXT: Mapping[str, _Reader] = {"string": lambda text, _: text, "number": _number_text, "list": _list_text}
_TYPED: Mapping[str, _Reader] = {"string": _typed_string, "number": _typed_number, "list": _typed_list}
