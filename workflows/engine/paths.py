"""Walking into a JSON answer: the two path languages of an HTTP tool (engine semantics 14.3 and 14.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from workflows.engine.values import NOTHING, Json, MaybeJson

_POSITION = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_SEGMENT = re.compile(
    r"""(?P<dot>\.)?(?P<key>[A-Za-z0-9_$-]+)      # a key, after a dot unless it is the first
      | \["(?P<quoted>(?:[^"\\]|\\.)*)"\]         # ["quoted key"]
      | \[(?P<position>[0-9]+)\]                  # [n]
    """,
    re.VERBOSE | re.DOTALL,
)


def extract(value: Json, path: str) -> MaybeJson:
    """The value under keys joined by dots, NOTHING where one is missing; brackets and quotes are not understood."""
    return _walk(value, path.split("."))


def follow(value: Json, path: str) -> MaybeJson:
    """The value under a failure rule's path: `a.b`, `["quoted key"]`, `[n]`; NOTHING where a key is missing.

    ValueError when the text is no such path: loading checks it, a template can still make a bad one.
    """
    return _walk(value, segments(path))


def segments(path: str) -> list[str]:
    """The keys of a path, indexes as their digits. ValueError as above."""
    found_keys: list[str] = []
    position = 0
    while position < len(path):
        found = _SEGMENT.match(path, position)
        if found is None or (found["key"] is not None and (found["dot"] is None) != (not found_keys)):
            raise ValueError(f'{path!r} is not a path: write keys joined by dots, ["quoted keys"] and [n].')
        if found["quoted"] is not None:
            found_keys.append(re.sub(r"\\(.)", r"\1", found["quoted"], flags=re.DOTALL))
        else:
            found_keys.append(found["key"] if found["key"] is not None else found["position"].lstrip("0") or "0")
        position = found.end()
    if not found_keys:
        raise ValueError("An empty text is not a path.")
    return found_keys


def _walk(value: Json, segments: Iterable[str]) -> MaybeJson:
    for segment in segments:
        if isinstance(value, dict) and segment in value:
            value = value[segment]
        elif isinstance(value, list) and _POSITION.fullmatch(segment) and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return NOTHING
    return value
