"""Splits a text into literal parts and the expressions between `{{` and `}}` (format 16.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_MATTERS = re.compile("[\"'`{}]")
#: From behind an opening quote to its closing one. A backslash takes the next character with it, not in backticks.
_REST_OF_QUOTED = {
    '"': re.compile(r'(?:[^"\\]|\\.)*+"', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]|\\.)*+'", re.DOTALL),
    "`": re.compile(r"[^`]*+`"),
}


@dataclass(frozen=True, slots=True)
class Span:
    """The source between the braces, blanks kept. `line` is its opening line in the text, from 1."""

    source: str
    line: int = field(default=1, compare=False, kw_only=True)


def parse(text: str) -> tuple[str | Span, ...]:
    """The parts of a text in order, literals joined; text behind a `{{` that never closes is literal."""
    parts: list[str | Span] = []
    done = 0
    for opening, span in _found(text):
        if opening > done:
            parts.append(text[done:opening])
        parts.append(span)
        done = opening + len(span.source) + 4
    if done < len(text):
        parts.append(text[done:])
    return tuple(parts)


def spans(text: str) -> Iterator[Span]:
    """The spans alone, one by one: a long text may hold more than anybody wants at once."""
    return (span for _, span in _found(text))


def _found(text: str) -> Iterator[tuple[int, Span]]:
    """Each span with the place of its `{{`."""
    done, line, counted = 0, 1, 0
    while (opening := text.find("{{", done)) >= 0:
        closing = _closing(text, opening + 2)
        if closing < 0:
            return
        # Counted from the span before: from the start, a text of many spans would be read as many times.
        line, counted = line + text.count("\n", counted, opening), opening
        yield opening, Span(text[opening + 2 : closing], line=line)
        done = closing + 2


def _closing(text: str, start: int) -> int:
    """Where the `}}` that ends the span stands, -1 when the text ends first."""
    depth, at = 0, start
    while found := _MATTERS.search(text, at):
        char, at = found[0], found.end()
        if char == "{":
            depth += 1
        elif char == "}":
            if depth:
                depth -= 1
            elif text.startswith("}", at):
                return at - 1
        elif quoted := _REST_OF_QUOTED[char].match(text, at):
            at = quoted.end()
        else:
            return -1
    return -1
