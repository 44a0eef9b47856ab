"""How the spec of a request changed since its run started: at the pause, and in the file as it is now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from approvals.models import ApprovalRequest
from approvals.records import Record

State: TypeAlias = Literal["same", "changed", "added", "removed", "moved"]
Place: TypeAlias = Literal["before", "on", "after", "several", "elsewhere"]


@dataclass(frozen=True, kw_only=True)
class StepChange:
    """One step (or another part: a tool, a key of the agent) at the pause and now, as text in the order as written."""

    name: str
    state: State
    before: str = ""
    now: str = ""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """`place` says where the differences lie, seen from the step that waits.

    `present` is False where the file is missing or invalid now; `why_not` says why nobody can rebind the request.
    """

    present: bool
    recorded: str
    now: str | None
    steps: list[StepChange] = field(default_factory=list)
    others: list[StepChange] = field(default_factory=list)
    place: Place = "elsewhere"
    can_rebind: bool = False
    why_not: str = ""


def drift_of(request: ApprovalRequest, record: Record) -> Drift | None:
    """The difference; None when the file says what it said when the run started."""
    raise NotImplementedError
