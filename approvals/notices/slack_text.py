"""Text as Slack shows it and takes no orders from: escaped, then clipped to Slack's limits.

Slack reads `<!channel>` and `<https://...|a label>` as orders, makes links and mentions out of what looks like one, and
formats what stands between asterisks. None of that comes out of text of a spec, a run or a person.
"""

from __future__ import annotations

import re
from typing import Any

from workflows.visible import clipped, visible

Block = dict[str, Any]

SECTION_LIMIT = 3000
BUTTON_VALUE_LIMIT = 2000
CONTEXT_LIMIT = 2000
LABEL_LIMIT = 75
FALLBACK_LIMIT = 3000

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
#: What mrkdwn would format, replace or link; such a text goes out as plain text, in which Slack leaves all as typed.
_FORMATTED = re.compile(r"[*_~`@#]|^\s*>|:[^\s:]+:|://|www\.", re.MULTILINE)


def escaped(text: str, limit: int) -> str:
    """The text with nothing unseen in it and `&`, `<` and `>` as entities, of at most `limit` UTF-16 units.

    An entity is never cut; a text that was cut ends in an ellipsis.
    """
    # No character becomes shorter, so more than `limit` of them are not needed.
    shown = visible(text[: limit + 1])
    pieces: list[str] = []
    used, fits = 0, 0  # `fits`: so many pieces leave room for the ellipsis
    for character in shown:
        piece = _ENTITIES.get(character, character)
        used += len(piece) + (ord(character) > 0xFFFF)
        if used > limit:
            return "".join(pieces[:fits]).rstrip() + "…"
        pieces.append(piece)
        if used < limit:
            fits = len(pieces)
    return "".join(pieces)


def line(text: str, limit: int) -> str:
    """One line of at most so many characters, not escaped yet."""
    return clipped(text[: limit * 4], limit)


def plain(text: str, limit: int = SECTION_LIMIT) -> Block:
    """A plain text object: shown as typed."""
    return {"type": "plain_text", "text": escaped(text, limit) or " ", "emoji": False}


def paragraph(text: str, limit: int = SECTION_LIMIT) -> Block:
    """A text object of somebody else's text: mrkdwn where nothing in it would be formatted, plain text otherwise."""
    if not text.strip() or _FORMATTED.search(text):
        return plain(text, limit)
    return {"type": "mrkdwn", "text": escaped(text, limit), "verbatim": True}


def section(text: str) -> Block:
    return {"type": "section", "text": paragraph(text)}


def context(*texts: str) -> Block:
    """Small lines below; each is one line, so that none can pass for another block."""
    shown = [plain(line(text, CONTEXT_LIMIT), CONTEXT_LIMIT) for text in texts if text]
    return {"type": "context", "elements": shown}


def link(url: str, label: str) -> Block:
    """A link of our own; `label` is ours as well."""
    target = url.replace("&", "&amp;").replace("<", "%3C").replace(">", "%3E").replace("|", "%7C")
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": f"<{target}|{label}>", "verbatim": True}]}


def button(label: str, action_id: str, value: str, style: str) -> Block:
    return {
        "type": "button",
        "text": {"type": "plain_text", "text": label},
        "action_id": action_id,
        "value": value,
        "style": style,
    }
