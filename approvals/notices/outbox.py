"""The outbox: notices are written in the transaction of what they tell, and leave after its commit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from approvals.models import ApprovalRequest

#: `opened`, `reminder`, `escalated`, `handed`, `glass_broken`: somebody is told. `changed`, `closed`: what was posted
#: before is brought up to date.
About: TypeAlias = Literal["opened", "reminder", "escalated", "handed", "glass_broken", "changed", "closed"]


def tell(request: ApprovalRequest, about: About, **facts: object) -> None:
    """Write one notice for each place that is to be told, inside the caller's transaction."""
