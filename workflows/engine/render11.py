"""Templates of a 1.1 spec: which expressions a tree of strings holds, and the tree with their values in it.

Evaluating is not done here: `collect` lists the expressions, an effect evaluates them, `fill` puts the values back
(engine semantics 10). A filled tree is made of mappings, lists and scalars, of `Text` where the author wrote text, and
of `Data` where one expression was the whole text. Data is never read as author text (10.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from workflows.engine import jsontext
from workflows.engine.references import Ref, Text, author
from workflows.engine.values import Json, MaybeJson
from workflows.spec.spans import Span, parse


@dataclass(frozen=True)
class Data:
    """A typed value that an expression gave: it arrives unchanged, whatever it contains."""

    value: Json


#: Data, Text, a mapping or list of these, or a scalar. A plain string is one that was not to be templated.
Rendered: TypeAlias = Json


# From a template to a filled tree ----------------------------------------------------------------------------


def collect(tree: Json, skip: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The sources of all expressions in the tree's strings, in order.

    Keys are never templated; `skip` names the keys of the top level whose values are not.
    """
    return tuple(_sources(tree, skip))


def _sources(tree: Json, skip: frozenset[str]) -> Iterator[str]:
    if isinstance(tree, str):
        yield from (part.source for part in parse(tree) if isinstance(part, Span))
    elif isinstance(tree, Mapping):
        for key, item in tree.items():
            if key not in skip:
                yield from _sources(item, frozenset())
    elif isinstance(tree, list | tuple):
        for item in tree:
            yield from _sources(item, frozenset())


def fill(tree: Json, values: Sequence[MaybeJson], skip: frozenset[str] = frozenset()) -> Rendered:
    """The tree with the values of `collect`'s expressions in place. The caller has refused NOTHING among them."""
    rest = iter(values)
    filled = _filled(tree, rest, skip)
    if next(rest, rest) is not rest:
        raise ValueError("more values than expressions")
    return filled


def _filled(tree: Json, values: Iterator[Json], skip: frozenset[str]) -> Rendered:
    if isinstance(tree, str):
        return _filled_text(parse(tree), values)
    if isinstance(tree, Mapping):
        return {key: item if key in skip else _filled(item, values, frozenset()) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        return [_filled(item, values, frozenset()) for item in tree]
    return tree


def _filled_text(parts: Sequence[str | Span], values: Iterator[Json]) -> Data | Text:
    if len(parts) == 1 and isinstance(parts[0], Span):
        return Data(_next(values))
    pieces: list[str | Ref] = []
    for part in parts:
        if isinstance(part, Span):
            pieces.append(jsontext.as_text(_next(values)))
        else:
            # Each literal by itself: a reference cannot be put together from what stands around a value.
            pieces.extend(author(part).parts)
    return Text.of(pieces)


def fill_plain(text: str, values: Sequence[MaybeJson]) -> str:
    """A text that cannot refer to the environment (query, message), with the values of its expressions in place."""
    rest = iter(values)
    return "".join(jsontext.as_text(_next(rest)) if isinstance(part, Span) else part for part in parse(text))


def _next(values: Iterator[Json]) -> Json:
    try:
        return next(values)
    except StopIteration:
        raise ValueError("fewer values than expressions") from None


# What a filled tree is used for ------------------------------------------------------------------------------


def text_of(node: Rendered) -> Text:
    """The node where text is needed: data as `as_text` prints it, everything else as its JSON."""
    if isinstance(node, Text):
        return node
    return Text.of((jsontext.as_text(node.value if isinstance(node, Data) else shown(node)),))


def shown(node: Rendered) -> Json:
    """The node as JSON for people, references as `${NAME}`."""
    if isinstance(node, Text):
        return node.shown()
    if isinstance(node, Data):
        return node.value
    if isinstance(node, Mapping):
        return {key: shown(item) for key, item in node.items()}
    return [shown(item) for item in node] if isinstance(node, list) else node


def resolved(node: Rendered, env: Mapping[str, str]) -> Json:
    """The node as JSON with the environment's values in it; it holds secrets. `env` has every name of `refs`."""
    if isinstance(node, Text):
        return node.resolve(env)
    if isinstance(node, Data):
        return node.value
    if isinstance(node, Mapping):
        return {key: resolved(item, env) for key, item in node.items()}
    return [resolved(item, env) for item in node] if isinstance(node, list) else node


def refs(node: Rendered) -> tuple[str, ...]:
    """The environment names that the node refers to, each once, in order."""
    return tuple(dict.fromkeys(_refs(node)))


def _refs(node: Rendered) -> Iterator[str]:
    if isinstance(node, Text):
        yield from node.refs
    elif isinstance(node, Mapping):
        for item in node.values():
            yield from _refs(item)
    elif isinstance(node, list):
        for item in node:
            yield from _refs(item)


def marked(node: Rendered) -> Json:
    """The node as JSON for hashing, where a reference differs from data that looks like one.

    A text with references becomes `{"text": [pieces and {"env": NAME}]}`, a mapping `{"map": {...}}`, so that no data
    can take the form of a reference; everything else is itself.
    """
    if isinstance(node, Text):
        if not node.refs:
            return node.shown()
        return {"text": [{"env": part.name} if isinstance(part, Ref) else part for part in node.parts]}
    if isinstance(node, Data):
        return marked(node.value)
    if isinstance(node, Mapping):
        return {"map": {key: marked(item) for key, item in node.items()}}
    return [marked(item) for item in node] if isinstance(node, list) else node
