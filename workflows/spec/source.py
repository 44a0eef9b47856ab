"""From the bytes of a file to a text that the YAML parser reads by the rules of YAML 1.2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

#: Of a spec file, and of a spec whose aliases are written out.
MAX_BYTES = 4 * 1024 * 1024

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN = b"\t\n\r" + bytes(range(0x20, 0x7F))
_TAG_DIRECTIVE = re.compile("^%TAG", re.MULTILINE)
_MOST_DIRECTIVES = 20
#: Line breaks in YAML 1.1 and to the parser, ordinary characters in YAML 1.2.
_NO_LONGER_BREAKS = "\x85\u2028\u2029"
#: As JSON writes a character beyond the basic plane; the parser refuses such halves. Not behind a backslash of its own.
_ESCAPED_PAIR = re.compile(r"(?<!\\)((?:\\\\)*+)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class Unreadable(Exception):
    """The file is not one YAML document; `line` and `column` (from 1) say where reading stopped."""

    def __init__(self, reason: str, line: int = 1, column: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


@dataclass(frozen=True, kw_only=True)
class Source:
    """`text` is for the parser, character by character where the author's is; `restore` undoes its stand-ins."""

    text: str
    _stand_ins: dict[int, str] = field(default_factory=dict)
    _pair: re.Pattern[str] | None = None

    def restore(self, value: str, escapes: bool) -> str:
        """A scalar as it was written; `escapes` says whether `\\u` means anything in it, as between double quotes."""
        if self._pair is not None:
            value = self._pair.sub(_joined if escapes else r"\\u\1\\u\2", value)
        return value.translate(self._stand_ins) if self._stand_ins else value


def source(data: str | bytes) -> Source:
    """Decode, check the size and the characters, and hide from the parser what it would read by old rules."""
    text = decoded(data)
    forbidden = None if _is_plain(text) else _FORBIDDEN.search(text)
    if forbidden:
        reason = f"the character U+{ord(forbidden[0]):04X} is not allowed in YAML; write it as an escape"
        raise Unreadable(reason, *_place(text, forbidden.start()))
    if "%TAG" in text and len(_TAG_DIRECTIVE.findall(text)) > _MOST_DIRECTIVES:
        raise Unreadable(f"more than {_MOST_DIRECTIVES} %TAG directives")
    return _with_stand_ins(text)


def decoded(data: str | bytes) -> str:
    """The text of a file, which is UTF-8 or, by its byte order mark, UTF-16, without that mark. Raises Unreadable."""
    size = len(data) if isinstance(data, bytes) else len(data.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise Unreadable(f"the file has {size} bytes; at most {MAX_BYTES} (4 MiB) are read")
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    try:
        # Checked again as text: that is how it is stored, and UTF-8 may be longer than UTF-16.
        return decoded(data.decode(encoding))
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, "replace")
        raise Unreadable(
            f"the byte 0x{data[error.start]:02X} is not {encoding.upper()}; save the file as UTF-8",
            *_place(before, len(before)),
        ) from error


def _with_stand_ins(text: str) -> Source:
    breaks = [char for char in _NO_LONGER_BREAKS if char in text]
    has_pairs = "\\u" in text and _ESCAPED_PAIR.search(text) is not None
    if not breaks and not has_pairs:
        return Source(text=text)
    unused = _characters_not_in(text)
    stand_ins = {next(unused): char for char in breaks}
    text = text.translate({ord(char): chr(code) for code, char in stand_ins.items()})
    pair = None
    if has_pairs:
        # As long as what it stands for, so that columns stay.
        start, middle = chr(next(unused)), chr(next(unused))
        text = _ESCAPED_PAIR.sub(rf"\1{start}u\2{middle}u\3", text)
        pair = re.compile(f"{start}u(....){middle}u(....)")
    return Source(text=text, _stand_ins=stand_ins, _pair=pair)


def _characters_not_in(text: str) -> Iterator[int]:
    """Codes that may stand for others. No text of the allowed size holds them all."""
    used = set(text)
    return (code for code in chain(range(0xE000, 0xF900), range(0x10000, 0x110000)) if chr(code) not in used)


def _is_plain(text: str) -> bool:
    """Whether a text is all ASCII of the allowed kind: a quicker question than the search."""
    return text.isascii() and not text.encode().translate(None, _PLAIN)


def _joined(pair: re.Match[str]) -> str:
    return chr(0x10000 + (int(pair[1], 16) - 0xD800) * 0x400 + int(pair[2], 16) - 0xDC00)


def _place(text: str, at: int) -> tuple[int, int]:
    before = text[:at].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
