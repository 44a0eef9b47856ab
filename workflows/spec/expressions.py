"""What may stand in an expression, and what it reads (format 16.3 and 16.4). Nothing is evaluated here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from workflows.spec import simple_expressions
from workflows.spec.jsonata_parser import Node, Symbol, SyntaxFault, parse

MAX_LENGTH = 4000
FORBIDDEN_FUNCTIONS = frozenset({"now", "millis", "random", "shuffle", "eval"})
#: What a tree node has besides the parts of the expression.
_NOT_PARTS = frozenset({"_outer_instance", "ancestor", "slot", "seeking_parent", "prefix", "environment", "signature"})


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A reason to refuse an expression. `position` is JSONata's: the offset just past the offending token."""

    message: str
    position: int | None = None


@dataclass(frozen=True, kw_only=True)
class Examined:
    """`names` holds each path that is read from the root as its leading run of plain names, each once, in order."""

    problems: tuple[Problem, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()


def check(source: str) -> list[Problem]:
    """What is wrong with an expression whatever its scope; empty when it may run."""
    return list(examine(source).problems)


def names(source: str) -> tuple[tuple[str, ...], ...]:
    """The paths that an expression reads from the root; empty when the expression is refused."""
    return examine(source).names


@lru_cache(maxsize=1024)
def examine(source: str) -> Examined:
    """Both at once. The first rule that fails is the only one reported, but for all its breaches."""
    if not source.strip():
        return _refused(Problem(message="the expression is empty"))
    if len(source) > MAX_LENGTH:
        message = f"the expression has {len(source)} characters; the limit is {MAX_LENGTH}"
        return _refused(Problem(message=message))
    paths = simple_expressions.paths_of(source)
    return examined_by_parser(source) if paths is None else Examined(names=paths)


def examined_by_parser(source: str) -> Examined:
    """The same for a text of sound length, without the short cut for simple ones."""
    try:
        tree = parse(source)
    except SyntaxFault as fault:
        return _refused(_syntax_problem(source, fault))
    parts = list(_parts(tree))
    forbidden = [
        Problem(message=f"${name} is not available in expressions{_at(source, position)}", position=position)
        for name, position in _variables(parts)
        if name in FORBIDDEN_FUNCTIONS
    ]
    if forbidden:
        return _refused(*forbidden)
    for part in parts:
        if part.type == "regex":
            message = f"a regular expression is not available in expressions{_at(source, part.position)}"
            return _refused(Problem(message=message, position=part.position))
    return Examined(names=tuple(dict.fromkeys(_read_from_root(tree))))


def _refused(*problems: Problem) -> Examined:
    return Examined(problems=problems)


def _syntax_problem(source: str, fault: SyntaxFault) -> Problem:
    message = f"the expression is not valid JSONata: {fault.reason}{_at(source, fault.position)}"
    return Problem(message=message, position=fault.position)


def _at(source: str, position: int | None) -> str:
    if position is None:
        return ""
    line = source.count("\n", 0, position) + 1
    return f" (character {position}" + (f", line {line})" if "\n" in source.strip() else ")")


def _parts(tree: Node) -> Iterator[Node]:
    """Every node of a tree, each once, in no promised order."""
    seen: set[int] = set()
    waiting: list[Any] = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (list, tuple)):
            waiting.extend(reversed(part))
        elif isinstance(part, Symbol) and id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting.extend(value for name, value in vars(part).items() if value and name not in _NOT_PARTS)


def _variables(parts: list[Node]) -> list[tuple[str, int]]:
    """Every use of a variable, and every name that is bound to one, in the order of the text."""
    found = [(part.value, part.position) for part in parts if part.type == "variable"]
    found += [(name, part.position) for part in parts for name in (part.focus, part.index) if isinstance(name, str)]
    found += [(part.value, part.position) for part in parts if part.type == "index"]
    return sorted(dict.fromkeys(found), key=lambda use: use[1])


def _read_from_root(tree: Node) -> Iterator[tuple[str, ...]]:
    waiting: list[Any] = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (list, tuple)):
            waiting.extend(reversed(part))
        elif isinstance(part, Symbol):
            if part.type == "path":
                run = tuple(_leading_names(part))
                if run:
                    yield run
                    continue
            waiting.extend(reversed(_evaluated_at_root(part)))


def _leading_names(path: Node) -> Iterator[str]:
    for step in path.steps:
        if step.type != "name":
            return
        yield step.value


def _evaluated_at_root(part: Node) -> list[Any]:
    """The parts of a node that see the root when the node itself does; filters, lambdas and transforms do not."""
    match part.type:
        case "path":
            return [part.steps[0]]
        case "binary" | "apply":
            return [part.lhs, part.rhs]
        case "bind":
            return [part.rhs]
        case "condition":
            shared = part.condition is part.then or part.then in (part.condition.arguments or ())
            return [part.condition, None if shared else part.then, part._else]
        case "block":
            return [part.expressions]
        case "unary":
            return [part.expressions, part.lhs_object, part.expression]
        case "function" | "partial":
            # `foo(a)` calls what is not a function, which fails when it runs; it is not a read of `foo`.
            called_by_name = part.procedure.type == "path" and len(part.procedure.steps) == 1
            return [None if called_by_name else part.procedure, part.arguments]
        case _:
            return []
