"""The mail that the Gmail tool sends, as MIME text in base64url (engine semantics 15.2).

Header lines in ASCII stand as they were written. What is not ASCII would reach most readers garbled, so a subject and
the names in front of addresses are then written as encoded words (RFC 2047).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from email.header import Header
from typing import Final

_LINE_BREAK: Final = re.compile("[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_LINE_END: Final = re.compile("\r\n|\r|\n")
#: The tokens of a list of addresses: a quoted name, an address, a mark, a name. Every character is in one of them.
_ADDRESSES: Final = re.compile(r'"[^"]*"\s*|<[^<>]*>|[",<>]|[^",<>]+')


def header_problem(field: str, text: str) -> str | None:
    """Why this text cannot stand in a header line; None when it can."""
    if _LINE_BREAK.search(text):
        return f'"{field}" holds a line break, and a mail has one line for it'
    found = _CONTROL.search(text)
    return f'"{field}" holds the control character U+{ord(found[0]):04X}' if found else None


def body_problem(text: str) -> str | None:
    """Why this text cannot be a mail's body; None when it can."""
    return '"body" holds a NUL character' if "\x00" in text else None


def raw(*, to: str, subject: str, body: str) -> str:
    """The mail as Gmail takes it, without padding. The three texts have no problem and no half surrogate pair."""
    lines = (f"To: {_recipients(to)}", f"Subject: {_subject(subject)}", 'Content-Type: text/plain; charset="UTF-8"')
    text = "\r\n".join((*lines, "", _LINE_END.sub("\r\n", body)))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode("ascii")


def _subject(text: str) -> str:
    return text if text.isascii() else _encoded(text, "Subject")


def _recipients(text: str) -> str:
    """The list of addresses with the names in front of them encoded where they must be. Addresses stay as they are."""
    return text if text.isascii() else "".join(_with_names_encoded(_ADDRESSES.findall(text)))


def _with_names_encoded(tokens: list[str]) -> Iterator[str]:
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token.isascii() or before.strip() not in ("", ",") or after[:1] + after[-1:] != "<>":
            yield token
            continue
        start, name = token[: len(token) - len(token.lstrip())], token.strip().strip('"')
        yield f"{start}{_encoded(name, 'To')} "


def _encoded(text: str, header: str) -> str:
    """The text in encoded words, folded onto lines as RFC 2047 wants them."""
    return Header(text, "utf-8", header_name=header).encode(linesep="\r\n")
