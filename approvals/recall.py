"""Taking an approval back while it waits for its effect (spec 1.2, `recall`; design 3.3)."""

from __future__ import annotations

from approvals.models import ApprovalRequest, RequestStatus
from statestore.clock import now
from workflows.actors import Actor
from workflows.errors import NotPossible
from workflows.models import WORKSPACE


def withdrawable(request: ApprovalRequest) -> bool:
    """Whether the approval of this request, as it is at hand, can still be taken back: its effect waits for that."""
    until = request.recall_until
    return request.status == RequestStatus.DECIDED and until is not None and until > now()


def withdraw(key: str, *, actor: Actor, reason: str, workspace: str = WORKSPACE) -> ApprovalRequest:
    """Take an approval back before it had an effect: the request that is open in its place, under a new key."""
    raise NotPossible("an approval cannot be withdrawn yet", status="")
