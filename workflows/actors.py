"""Who acts. Every door that changes state is given an Actor; nobody reads one from a request body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Surface: TypeAlias = Literal["admin", "api", "slack", "link", "cli", "rule", "system", "webhook", "schedule", "poll"]


@dataclass(frozen=True, kw_only=True)
class Actor:
    """`label` is the readable name that stays when the user is deleted; `user_id` is the Django user, if there is one.

    `detail` keeps what else identifies the actor: at the command line the operating system's user and host, behind a
    signed link the address to which it was sent.
    """

    label: str
    surface: Surface
    user_id: int | None = None
    detail: str = ""


def system(what: str) -> Actor:
    """The product itself: the sweeper, the recovery, a rule."""
    return Actor(label=what, surface="system")
