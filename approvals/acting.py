"""Every act on a request that waits: request and record are read together, and anew where somebody was quicker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from approvals import records
from approvals.errors import AlreadyResolved, ApprovalNotFound
from approvals.models import ApprovalRequest
from approvals.notices.outbox import channels_of
from approvals.queue import decision_of, is_key
from statestore.entries import Versioned
from workflows.bound import bound
from workflows.errors import Busy
from workflows.metrics.runs import CLAIMS_LOST
from workflows.models import WORKSPACE

TRIES = 3

Answer = TypeVar("Answer")


def find_request(key: str, workspace: str = WORKSPACE, agent_id: str | None = None) -> ApprovalRequest | None:
    """The request with this key in this scope, whatever became of it."""
    if not is_key(key):
        return None
    found = ApprovalRequest.objects.select_related("run").filter(workspace=workspace, key=key)
    if agent_id is not None:
        found = found.filter(agent_id=agent_id)
    return found.first()


def act_on(
    key: str,
    act: Callable[[ApprovalRequest, Versioned], Answer | None],
    *,
    workspace: str = WORKSPACE,
    agent_id: str | None = None,
) -> Answer:
    """What `act` makes of the request and its record; it answers None when the record changed before its claim.

    ApprovalNotFound when nothing waits under this key, AlreadyResolved when it was over before the claim, Busy after
    three lost tries; and whatever `act` raises.
    """
    for _ in range(TRIES):
        request = find_request(key, workspace, agent_id)
        stored = None if request is None else records.read(request)
        if request is None or stored is None:
            raise ApprovalNotFound(key, decision_of(key, workspace) if agent_id is None else None)
        if not records.fits(request, stored.value):
            continue
        channels_of(request)  # a spec that has to be read for it is not read inside the transaction
        with bound(key=key):
            answer = act(request, stored)
        if answer is not None:
            return answer
        if records.read(request) is None:
            CLAIMS_LOST.add("decision")
            raise AlreadyResolved(decision_of(key, workspace))
    raise Busy("too many people act on this request at once; try again in a moment")
