"""The JSONata parser, with two faults of the library mended. Everything of ours that parses JSONata uses this one.

jsonata-python 0.7.1 puts the left side of `a ?? b` and `a ?: b` into the tree twice and then transforms it twice in
place, which flips negative literals (`-5 ?? 99` is 5) and takes time that doubles with every nested operator. Here
the left side is transformed once and the result shared.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, TypeAlias

_recursion_limit = sys.getrecursionlimit()
# Importing the library sets the process's recursion limit to 10,000, which no server asked for.
from jsonata import jexception, parser  # noqa: E402

sys.setrecursionlimit(_recursion_limit)

#: Of one path; the library's time grows with the square of it.
MAX_STEPS = 200

#: A node of a syntax tree, an instance of `Symbol`.
Node: TypeAlias = Any
Symbol = parser.Parser.Symbol


class SyntaxFault(Exception):
    """The source is not JSONata. `position` is the offset just past the offending token, when it is known."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


def parse(source: str) -> Node:
    """The syntax tree. Raises SyntaxFault, and nothing else, for any text."""
    try:
        return _parse_at_any_depth(source)
    except SyntaxFault:
        raise
    except jexception.JException as error:
        raise SyntaxFault(_reason(error), error.location) from error
    except IndexError as error:
        raise SyntaxFault("it ends too early", len(source)) from error
    except KeyError as error:
        raise SyntaxFault(f"unknown operator {error.args[0]}", _own_parser().lexer.position) from error
    except RecursionError as error:
        raise SyntaxFault("it is nested too deep") from error
    except Exception as error:
        # The library leaks other errors (TypeError, AttributeError, ValueError) on some malformed texts.
        raise SyntaxFault("it cannot be parsed", _own_parser().lexer.position) from error


def _parse_at_any_depth(source: str) -> Node:
    """Parse whatever stack the caller has used up: a long chain such as `a & b & c ...` is deep to the parser."""
    try:
        return _own_parser().parse(source)
    except RecursionError:
        with _raised_limit:
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(limit + _DEEPEST_PARSE)
            try:
                return _own_parser().parse(source)
            finally:
                sys.setrecursionlimit(limit)


#: What the longest source of nested brackets needs; the parser is plain Python, so that its depth costs no C stack.
_DEEPEST_PARSE = 40_000
_raised_limit = threading.Lock()


_threads = threading.local()


def _own_parser() -> Parser:
    """This thread's parser: making one costs ten times as much as a short expression."""
    if not hasattr(_threads, "parser"):
        _threads.parser = Parser()
    own: Parser = _threads.parser
    return own


class Parser(parser.Parser):  # type: ignore[misc]  # the library has no types
    """Parses one expression after the other; it never compiles regular expression literals."""

    def __init__(self) -> None:
        super().__init__()
        self._register_shared("??", _Coalesce(self))
        self._register_shared("?:", _Default(self))

    def _register_shared(self, name: str, symbol: Node) -> None:
        symbol.lbp = self.symbol_table[name].lbp
        symbol.id = symbol.value = name
        self.symbol_table[name] = symbol

    def parse(self, jsonata: str, regex_engine: Any = None) -> Node:
        self.errors: list[Exception] = []
        self.ancestry: list[Node] = []
        self.ancestor_label = self.ancestor_index = 0
        return super().parse(jsonata, _no_regex)

    def process_ast(self, expr: Node | None) -> Node | None:
        if not isinstance(expr, _SharedLeft):
            result = super().process_ast(expr)
            if result is not None and result.type == "path" and len(result.steps) > MAX_STEPS:
                raise SyntaxFault(f"a path has more than {MAX_STEPS} steps", result.steps[MAX_STEPS].position)
            return result
        left = self.process_ast(expr.then)
        result = Symbol(self)
        result.type = "condition"
        result.position = expr.position
        result.shared_left = True
        result.condition = result.then = left
        if isinstance(expr, _Coalesce):
            result.condition = _exists(self, left)
        self.push_ancestry(result, left)
        result._else = self.process_ast(expr._else)
        self.push_ancestry(result, result._else)
        return result

    def tail_call_optimize(self, expr: Node) -> Node:
        if expr.type == "condition" and getattr(expr, "shared_left", False):
            # A thunk in the shared left side would be tested instead of its value.
            expr._else = self.tail_call_optimize(expr._else)
            return expr
        return super().tail_call_optimize(expr)


class _SharedLeft(parser.Parser.Infix):  # type: ignore[misc]  # the library has no types
    """An operator that yields its left side or else its right side."""

    def led(self, left: Node) -> Node:
        self.type = "condition"
        self.then = left
        self._else = self._outer_instance.expression(0)
        return self


class _Coalesce(_SharedLeft):
    def __init__(self, owner: Parser) -> None:
        super().__init__(owner, "??")


class _Default(_SharedLeft):
    def __init__(self, owner: Parser) -> None:
        super().__init__(owner, "?:")


def _exists(owner: Parser, value: Node) -> Node:
    """The call `$exists(value)` of an already transformed value."""
    call = Symbol(owner)
    call.type, call.value, call.arguments = "function", "(", [value]
    call.procedure = Symbol(owner)
    call.procedure.type, call.procedure.value = "variable", "exists"
    return call


def _no_regex(pattern: str, _flags: Any) -> str:
    return pattern


def _reason(error: jexception.JException) -> str:
    if error.error == "S0301" and error.current is not None:
        return f"unsupported escape sequence \\{error.current}"
    if error.error in ("S0206", "S0207") and error.current == "(end)":
        return "it ends too early"
    if error.error == "S0102":
        return "a number is out of range"
    return str(error)
