"""What a YAML scalar means under the 1.2 core schema (format 2)."""

from __future__ import annotations

import re
from typing import TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

_WORDS: dict[str, Scalar] = {"": None, "~": None}
for _word, _meaning in (("null", None), ("true", True), ("false", False)):
    _WORDS.update(dict.fromkeys((_word, _word.capitalize(), _word.upper()), _meaning))
for _sign, _factor in (("", 1), ("+", 1), ("-", -1)):
    _WORDS.update({f"{_sign}.{word}": _factor * float("inf") for word in ("inf", "Inf", "INF")})
_WORDS.update(dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")))

_NUMBER = re.compile(
    r"(?P<int>[-+]?[0-9]+)|0o(?P<oct>[0-7]+)|0x(?P<hex>[0-9a-fA-F]+)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
)
_NUMBER_STARTS = frozenset("+-.0123456789")
_CORE = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}
#: Python and other readers give up on longer ones, and no number of a spec needs them.
MOST_DIGITS = 1000


class NotAScalar(ValueError):
    """The text is not what its tag says, or not usable; the message says why."""


def plain(text: str) -> Scalar:
    """The meaning of an unquoted scalar without a tag."""
    if text in _WORDS:
        return _WORDS[text]
    number = _NUMBER.fullmatch(text) if text[0] in _NUMBER_STARTS else None
    if number is None:
        return text
    if len(text) > MOST_DIGITS:
        raise NotAScalar(f"a number of {len(text)} digits is too long; at most {MOST_DIGITS} are read")
    kind = number.lastgroup
    if kind == "float":
        return float(text)
    return int(number[kind or 0], {"int": 10, "oct": 8, "hex": 16}[kind or "int"])


def tagged(text: str, tag: str) -> Scalar:
    """The meaning of a scalar with an explicit core tag such as `!!str`; other tags are refused."""
    name = tag.removeprefix(_CORE)
    if tag == "!" or name == "str":
        return text
    if name == tag or name not in _TYPES:
        raise NotAScalar(f"the tag {_shown(tag)} is not known here")
    value = plain(text)
    if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and name != "bool"):
        raise NotAScalar(f"the value does not fit its tag {_shown(tag)}")
    return float(value) if name == "float" and isinstance(value, int) else value


def container_tag_fits(tag: str | None, name: str) -> bool:
    """Whether a list (`seq`) or mapping (`map`) may carry this tag."""
    return tag in (None, "!", _CORE + name)


def _shown(tag: str) -> str:
    return f"!!{tag.removeprefix(_CORE)}" if tag.startswith(_CORE) else tag[:60]
