"""References in what an author wrote: `${NAME}` of the environment, and the placeholders of a 1.0 spec.

The rules are those of engine semantics 9, 10.4 and 14.1.
Author text is parsed once, here. What data brings in is carried as plain text beside the references, so it can never be
read as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from workflows.engine import jsontext
from workflows.engine.values import NOTHING, Json, MaybeJson, Outputs

_ENVIRONMENT = r"\$(?P<escaped>\$?)\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"
_PLACEHOLDER = r"\{\{\s*(?P<double>[A-Za-z0-9_.]+)\s*\}\}|\{(?P<single>[A-Za-z0-9_.]+)\}"
_AUTHOR = re.compile(_ENVIRONMENT)
#: `${NAME}` comes first: it is a reference to the environment, never a placeholder behind a dollar.
_AUTHOR_10 = re.compile(f"{_ENVIRONMENT}|{_PLACEHOLDER}")
_POSITION = re.compile("0|[1-9][0-9]*")


@dataclass(frozen=True)
class Ref:
    """A reference to an environment variable that the author wrote."""

    name: str


@dataclass(frozen=True)
class Text:
    """A rendered text: plain pieces, never to be read again, and the author's references between them."""

    parts: tuple[str | Ref, ...]

    @classmethod
    def of(cls, parts: Iterable[str | Ref]) -> Text:
        """The text with neighbouring plain pieces joined, so that equal texts compare equal."""
        joined: list[str | Ref] = []
        for part in parts:
            if isinstance(part, str) and joined and isinstance(joined[-1], str):
                joined[-1] += part
            elif part != "":
                joined.append(part)
        return cls(tuple(joined))

    @property
    def refs(self) -> tuple[str, ...]:
        """The names referred to, each once, in order."""
        return tuple(dict.fromkeys(part.name for part in self.parts if isinstance(part, Ref)))

    def shown(self) -> str:
        """The text with references as `${NAME}`, for people."""
        return "".join(f"${{{part.name}}}" if isinstance(part, Ref) else part for part in self.parts)

    def resolve(self, env: Mapping[str, str]) -> str:
        """The text with environment values put in verbatim; `env` has every name of `refs`."""
        return "".join(env[part.name] if isinstance(part, Ref) else part for part in self.parts)


def author(text: str) -> Text:
    """What an author wrote: `${NAME}` is a reference, `$${NAME}` the text `${NAME}`, every other dollar a dollar."""
    return Text.of(_author_parts(text))


def _author_parts(text: str) -> Iterator[str | Ref]:
    end = 0
    for found in _AUTHOR.finditer(text):
        yield text[end : found.start()]
        yield _environment(found)
        end = found.end()
    yield text[end:]


def author10(text: str, outputs: Outputs, input: str) -> Text:
    """Author text of a 1.0 spec: references to the environment and placeholders, found in one pass."""
    return Text.of(_author10_parts(text, outputs, input))


def _author10_parts(text: str, outputs: Outputs, input: str) -> Iterator[str | Ref]:
    end = 0
    for found in _AUTHOR_10.finditer(text):
        yield text[end : found.start()]
        yield _environment(found) if found["name"] else _filled(found, outputs, input)
        end = found.end()
    yield text[end:]


def fill10(text: str, outputs: Outputs, input: str) -> str:
    """A 1.0 text that cannot refer to the environment (query, message), with its placeholders filled.

    A placeholder that does not resolve, and everything of the form `${NAME}`, stays as written.
    """
    return _AUTHOR_10.sub(lambda found: found[0] if found["name"] else _filled(found, outputs, input), text)


def fill10_tree(tree: Json, outputs: Outputs, input: str, skip: frozenset[str] = frozenset()) -> Json:
    """The tree with every string as the Text that `author10` makes of it; keys never, nor what `skip` names at the top.

    The form is that of `render11.fill`, so the helpers for a filled tree serve both versions.
    """
    if isinstance(tree, str):
        return author10(tree, outputs, input)
    if isinstance(tree, Mapping):
        return {key: item if key in skip else fill10_tree(item, outputs, input) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        return [fill10_tree(item, outputs, input) for item in tree]
    return tree


def _environment(found: re.Match[str]) -> str | Ref:
    return found[0][1:] if found["escaped"] else Ref(found["name"])


def _filled(found: re.Match[str], outputs: Outputs, input: str) -> str:
    value = _looked_up(found["double"] or found["single"], outputs, input)
    return jsontext.as_text(value) if isinstance(value, str | bool | int | float) else found[0]


def _looked_up(key: str, outputs: Outputs, input: str) -> MaybeJson:
    """A flat look-up of `input`, a step, or a field of a step. Names may hold dots themselves, so each dot is tried."""
    if key == "input":
        return input
    if key in outputs:
        return outputs[key]
    for dot in (at for at, character in enumerate(key) if character == "."):
        step, name = key[:dot], key[dot + 1 :]
        value = field(outputs[step], name) if step in outputs else NOTHING
        if value is not NOTHING:
            return value
    return NOTHING


def field(output: MaybeJson, name: str) -> MaybeJson:
    """The field of an output, or the item of a list by position; NOTHING when there is none."""
    if isinstance(output, Mapping):
        return output.get(name, NOTHING)
    # Longer than any list can be: int() refuses thousands of digits.
    if isinstance(output, list) and len(name) < 16 and _POSITION.fullmatch(name) and int(name) < len(output):
        return output[int(name)]
    return NOTHING
