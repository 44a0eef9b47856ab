"""Expressions so simple that a regular expression can judge them, which takes a fiftieth of the parser's time.

Only what is certain is judged here: paths of plain names with simple filters, literals and calls of functions, joined
by operators and by `? :`. Of such a text the parser would say that it is valid, and that it reads these paths; a test
holds the two together.
"""

from __future__ import annotations

import functools
import re

_WORDS = "and|or|in|true|false|null"
_REFUSED = "now|millis|random|shuffle|eval"
_BLANK = r"[ \t\r\n]*+"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_FIELD = rf"(?!(?:{_WORDS})(?![A-Za-z0-9_])){_NAME}"
_TEXT = r"""(?:"[^"\\]*+"|'[^'\\]*+')"""
_NUMBER = r"-?+(?:0|[1-9][0-9]{0,14}+)(?:\.[0-9]{1,15}+)?+"
_OPERATOR = rf"(?:{_BLANK}(?:!=|<=|>=|[=<>+\-*/%&]){_BLANK}|[ \t\r\n]++(?:and|or|in)[ \t\r\n]++)"


def _chain(step: str) -> str:
    """Operands joined by operators, the paths among them made of such steps."""
    value = rf"(?:{step}(?:\.{step}){{0,20}}+|{_TEXT}|{_NUMBER}|true|false|null)"
    call = (
        rf"\$(?!(?:{_REFUSED})(?![A-Za-z0-9_])){_NAME}\({_BLANK}"
        rf"(?:{value}(?:{_BLANK},{_BLANK}{value})*+{_BLANK})?+\)"
    )
    operand = rf"(?:{value}|{call})"
    return rf"{operand}(?:{_OPERATOR}{operand})*+"


_FILTER = rf"\[{_BLANK}{_chain(_FIELD)}{_BLANK}\]"
_CHAIN = _chain(rf"{_FIELD}(?:{_FILTER}){{0,3}}+")
_SIMPLE = rf"{_BLANK}{_CHAIN}(?:{_BLANK}\?{_BLANK}{_CHAIN}{_BLANK}:{_BLANK}{_CHAIN}){{0,20}}+{_BLANK}"
#: Finds the paths of a simple expression: in group 1, when it is not a word. What stands in a filter is none of them.
_ANY_FILTER = rf"\[(?:{_TEXT}|[^\]\"'])*+\]"
_PARTS = re.compile(rf"""{_TEXT}|\${_NAME}|({_NAME}(?:{_ANY_FILTER})*+(?:\.{_NAME}(?:{_ANY_FILTER})*+)*+)|[0-9.]++""")
_FILTERS = re.compile(_ANY_FILTER)
_NO_PATHS = frozenset(_WORDS.split("|"))


@functools.cache
def _simple() -> re.Pattern[str]:
    """Compiled when the first expression comes: that takes a tenth of a second, and most processes meet none."""
    return re.compile(_SIMPLE)


def paths_of(source: str) -> tuple[tuple[str, ...], ...] | None:
    """The paths that a simple expression reads, each once, in order; None when it is not simple."""
    if _simple().fullmatch(source) is None:
        return None
    found = dict.fromkeys(_FILTERS.sub("", path) for path in _PARTS.findall(source) if path and path not in _NO_PATHS)
    return tuple(tuple(path.split(".")) for path in found)
