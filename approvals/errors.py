"""Refusals of this app (design 5.2). Nothing was changed, nothing was consumed."""

from __future__ import annotations

from typing import Any

from workflows.errors import Refusal


class ApprovalNotFound(Refusal):
    """No pending approval under this key: never issued, resolved, or expired; `decision` says which, if known."""

    code = "approval_not_found"

    def __init__(self, key: str, decision: dict[str, Any] | None = None) -> None:
        message = f"there is no pending approval {key}: it was already resolved, or it expired"
        if decision is not None:
            message = f"{message}; {in_words(decision)}"
        super().__init__(message, **({"decision": decision} if decision is not None else {}))


class AlreadyResolved(Refusal):
    """Somebody else was quicker; `decision` says who and how."""

    code = "already_resolved"

    def __init__(self, decision: dict[str, Any] | None) -> None:
        told = in_words(decision) if decision is not None else "somebody else decided it"
        super().__init__(f"this approval was just resolved: {told}", decision=decision)


class ActionChanged(Refusal):
    """The digest sent is not the one stored: what you saw is not what would run. Look again."""

    code = "action_changed"

    def __init__(self, shown: str, present: str) -> None:
        super().__init__(
            "the action is not the one that you were shown; look at it again before you decide",
            shown=shown,
            present=present,
        )


class Inconsistent(RuntimeError):
    """Record, request and run disagree although they change together; nothing was changed. An operator must look."""


def in_words(decision: dict[str, Any]) -> str:
    """`approved by Asha on 2026-11-29 at 10:00 UTC, in the admin`."""
    by = f" by {decision['by']}" if decision.get("by") else ""
    day, _, clock = str(decision["at"]).partition("T")
    return f"{decision['outcome']}{by} on {day} at {clock[:5]} UTC ({decision['surface']})"
