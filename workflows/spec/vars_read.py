"""Which vars an expression's value may hold. Nothing is evaluated here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from workflows.spec import simple_expressions
from workflows.spec.jsonata_parser import Node, Symbol, SyntaxFault, parse

#: Read whole, `vars` gives every one. No var can be called so.
ALL: Final = "*"
_VARS: Final = "vars"
#: Parts of a node that only choose among values (filters, orders), and what is no part of the expression.
_LEFT_OUT: Final = frozenset(
    {"stages", "predicate", "terms", "steps", "_outer_instance", "ancestor", "slot", "seeking_parent", "environment"}
)


@lru_cache(maxsize=1024)
def vars_read(source: str) -> frozenset[str]:
    """The names behind `vars` at the root, `ALL` for `vars` as a whole; none of what only chooses."""
    paths = simple_expressions.paths_of(source)
    if paths is not None:
        return frozenset(ALL if len(path) == 1 else path[1] for path in paths if path[0] == _VARS)
    try:
        return frozenset(_read(parse(source)))
    except SyntaxFault:
        return frozenset()


def _read(tree: Node) -> Iterator[str]:
    """Each node is looked at with whether the context there is the root: `$` and a plain name mean that."""
    seen: set[tuple[int, bool]] = set()
    waiting: list[tuple[Any, bool]] = [(tree, True)]
    while waiting:
        part, at_root = waiting.pop()
        if isinstance(part, (list, tuple)):
            waiting.extend((one, at_root) for one in part)
        elif isinstance(part, Symbol) and (id(part), at_root) not in seen:
            seen.add((id(part), at_root))
            if part.type == "path":
                found, inner = _of_path(part.steps, at_root)
                yield from found
                waiting.extend(inner)
            elif _gives_root(part, at_root):
                yield ALL
            # A function that is defined here sees this context, with whatever it is called.
            context = at_root and part.type != "path"
            waiting.extend((value, context) for name, value in vars(part).items() if value and name not in _LEFT_OUT)


def _of_path(steps: list[Node], at_root: bool) -> tuple[list[str], list[tuple[Node, bool]]]:
    """What its steps read by name, and those that are expressions themselves, each with its context."""
    found: list[str] = []
    inner: list[tuple[Node, bool]] = []
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        # `a@$x` leaves the context as it is.
        stays = at_root and isinstance(step.focus, str)
        if step.type == "name":
            if at_root and step.value == _VARS:
                found.append(after.value if after is not None and after.type == "name" else ALL)
        elif step.type == "parent":
            # What lies around may be the root.
            stays = True
        elif step.type == "variable" and _gives_root(step, at_root):
            stays = True
            found += [] if after is not None else [ALL]
        else:
            inner.append((step, at_root))
        at_root = stays
    return found, inner


def _gives_root(part: Node, at_root: bool) -> bool:
    """All of the root: `$$` anywhere, `$` where the context is that, and there `*` and `**` give what is in it."""
    if part.type == "variable":
        return part.value == "$" or (at_root and part.value == "")
    return at_root and part.type in ("wildcard", "descendant")
