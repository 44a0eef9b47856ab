"""The end of requests that nobody decided in time: exactly once, under the mirror of the claim (design 3.3)."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Q

from approvals import audit, records
from approvals.errors import Inconsistent
from approvals.models import ApprovalRequest, RequestStatus
from approvals.policy import policy_of
from approvals.services import close_request
from statestore.clock import DbNow
from statestore.entries import ABSENT
from statestore.faults import point
from workflows import codec
from workflows.actors import system
from workflows.endings import end_from_outside
from workflows.engine.events import Expired, Failed, Rejected
from workflows.engine.values import Outputs
from workflows.models import Run, Status

logger = logging.getLogger("kampong.approvals")


def expire_due(limit: int = 200) -> int:
    """Close requests whose lifetime is over and end their runs as `expired`; how many this call closed."""
    due = ApprovalRequest.objects.filter(status=RequestStatus.OPEN, expires_at__lte=DbNow()).order_by("id")
    closed = 0
    for request in due[:limit]:
        try:
            closed += _expire(request)
        except Inconsistent:
            # Rolled back. One broken row must not keep the others from their end.
            logger.exception("request %s cannot expire", request.pk)
    return closed


_NOBODY = "nobody decided in time: the approval expired"


def _end(run: Run, request: ApprovalRequest, outputs: Outputs) -> bool:
    """End the waiting run as its policy says (`on_expire`)."""
    event: Expired | Failed | Rejected = Expired(step=request.step, error=_NOBODY)
    match policy_of(request).on_expire:
        case "fail":
            event = Failed(step=request.step, error=_NOBODY)
        case "reject":
            event = Rejected(step=request.step, reason=_NOBODY)
    return end_from_outside(run, where=Q(status=Status.AWAITING), event=event, outputs=outputs)


def _expire(request: ApprovalRequest) -> bool:
    store = records.store_of(request.workspace, request.agent_id)
    with transaction.atomic():
        record = store.take_expired(records.store_key(request.key), ABSENT)
        if record is ABSENT:
            if (
                records.peek(request) is None
                and ApprovalRequest.objects.filter(pk=request.pk, status=RequestStatus.OPEN).exists()
            ):
                logger.error("request %s is open and overdue but has no record; an operator must look", request.pk)
            return False
        point("expire.claimed")
        close_request(request, RequestStatus.EXPIRED)
        run = Run.objects.get(pk=request.run_id)
        # Nobody waits for a request of the mode `record`; its run has long gone on.
        if request.mode != "record" and not _end(run, request, codec.outputs_from(record)):
            raise Inconsistent(f"run {run.uuid} was not waiting although its record was there; nothing was changed")
        audit.record(
            "expire",
            outcome="expired",
            workspace=request.workspace,
            actor=system("expiry"),
            key=str(request.key),
            run=str(run.uuid),
            agent_id=request.agent_id,
            step=request.step,
            digest=request.digest,
            spec_hash=request.spec_hash,
            policy=request.policy,
        )
    return True
