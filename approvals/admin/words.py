"""A request in words: what will happen, what exactly is sent, what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from approvals.models import ApprovalRequest, RequestStatus
from approvals.wording import (
    LINE,
    MOST_ROWS,
    Message,
    Part,
    changed_of,
    ending_of,
    goes_on,
    host_of,
    is_open,
    left,
    line_of,
    message_of,
    parts_of,
    promise_of,
    vote_counts,
)
from workflows.admin.words import MOST, SHORT, Badge, Data, data, text_of, visible
from workflows.engine.values import Json

__all__ = [
    "LINE",
    "MOST_ROWS",
    "Message",
    "Row",
    "badge_of",
    "changed_of",
    "ending_of",
    "goes_on",
    "host_of",
    "is_open",
    "left",
    "line_of",
    "message_of",
    "promise_of",
    "rows_of",
    "shares",
    "vote_counts",
]

#: A message that is longer than this opens like all that is long.
LETTER = 2000


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the action: where it stands, and what is there."""

    group: str
    name: str
    value: Data
    #: The text of a message, which is read as it will be read: in whole, with its lines. Empty for all else.
    letter: str = ""


def rows_of(kind: str, action: Json, *, cut: int = 0, link: str = "") -> list[Row]:
    """The action as a table, in the order written. Every value is there; what is long opens.

    `cut` is how many characters are too many: they go from the longest values, which lead to `link`.
    """
    parts = list(parts_of(kind, action))
    sizes = [len(text_of(part.value)) for part in parts]
    most = max(SHORT, shares(sizes, sum(sizes) - cut)) if cut else MOST
    return [_row(part, most, link) for part in parts]


def shares(sizes: list[int], budget: int) -> int:
    """The size to which each is cut so that together they fit: what is shorter than that stays whole."""
    left = max(0, budget)
    for number, size in enumerate(ordered := sorted(sizes)):
        share = left // (len(ordered) - number)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _row(part: Part, most: int, link: str) -> Row:
    letter = ""
    if part.is_letter:
        whole = text_of(part.value).replace("\r\n", "\n")
        letter = visible(whole) if len(whole) <= min(LETTER, most) else ""
    return Row(group=part.group, name=part.name, value=data(part.value, most=most, link=link), letter=letter)


_ENDINGS = {
    RequestStatus.DECIDED: Badge(text="decided", tone="good"),
    RequestStatus.EXPIRED: Badge(text="expired", tone="quiet"),
    RequestStatus.CANCELLED: Badge(text="cancelled", tone="quiet"),
    RequestStatus.WITHDRAWN: Badge(text="withdrawn", tone="quiet"),
}


def badge_of(request: ApprovalRequest) -> Badge:
    """Where the request stands: an open one whose time is over is expired, swept or not."""
    if request.status == RequestStatus.OPEN:
        return Badge(text="waiting", tone="wait") if is_open(request) else Badge(text="expired", tone="quiet")
    return _ENDINGS[RequestStatus(request.status)]
