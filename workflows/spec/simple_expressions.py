"""Expressions so simple that a regular expression can judge them, which takes a fiftieth of the parser's time.

Only what is certain is judged here: paths of plain names, literals and calls of functions, joined by operators. Of such
a text the parser would say that it is valid, and that it reads these paths; a test holds the two together.
"""

from __future__ import annotations

import re

_WORDS = "and|or|in|true|false|null"
_BLANK = r"[ \t\r\n]"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_PATH = rf"(?!(?:{_WORDS})(?![A-Za-z0-9_])){_NAME}(?:\.(?!(?:{_WORDS})(?![A-Za-z0-9_])){_NAME}){{0,20}}+"
_TEXT = r"""(?:"[^"\\]*+"|'[^'\\]*+')"""
_NUMBER = r"(?:0|[1-9][0-9]{0,14}+)(?:\.[0-9]{1,15}+)?+"
_VALUE = rf"(?:{_PATH}|{_TEXT}|{_NUMBER}|true|false|null)"
_REFUSED = "now|millis|random|shuffle|eval"
_CALL = (
    rf"\$(?!(?:{_REFUSED})(?![A-Za-z0-9_])){_NAME}\({_BLANK}*+"
    rf"(?:{_VALUE}(?:{_BLANK}*+,{_BLANK}*+{_VALUE})*+{_BLANK}*+)?+\)"
)
_OPERAND = rf"(?:{_VALUE}|{_CALL})"
_OPERATOR = rf"(?:{_BLANK}*+(?:!=|<=|>=|[=<>+\-*/%&]){_BLANK}*+|{_BLANK}++(?:and|or|in){_BLANK}++)"

_SIMPLE = re.compile(rf"{_BLANK}*+{_OPERAND}(?:{_OPERATOR}{_OPERAND})*+{_BLANK}*+")
#: Finds the paths of a simple expression: in group 1, when it is not a word.
_PARTS = re.compile(rf"""{_TEXT}|\${_NAME}|({_NAME}(?:\.{_NAME})*+)""")
_NO_PATHS = frozenset(_WORDS.split("|"))


def paths_of(source: str) -> tuple[tuple[str, ...], ...] | None:
    """The paths that a simple expression reads, each once, in order; None when it is not simple."""
    if _SIMPLE.fullmatch(source) is None:
        return None
    found = dict.fromkeys(path for path in _PARTS.findall(source) if path and path not in _NO_PATHS)
    return tuple(tuple(path.split(".")) for path in found)
