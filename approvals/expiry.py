"""The end of requests that nobody decided in time: exactly once, under the mirror of the claim (design 3.3)."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Q

from approvals import audit, records
from approvals.errors import Inconsistent
from approvals.metrics import closed
from approvals.models import ApprovalRequest, RequestStatus
from approvals.notices.outbox import channels_of
from approvals.policy import Verdict, policy_of
from approvals.records import Record
from approvals.services import close_request, present_hash, proof
from statestore.clock import DbNow, now
from statestore.entries import ABSENT
from statestore.faults import point
from workflows import codec
from workflows.actors import system
from workflows.endings import end_from_outside
from workflows.engine import jsontext
from workflows.engine.events import Expired, Failed, Rejected
from workflows.engine.gates import EXPIRED
from workflows.errors import NotPossible
from workflows.models import Run, Status
from workflows.successors import go_on, leave
from workflows.times import rfc3339

logger = logging.getLogger("kampong.approvals")

#: Requests closed in one pass, each in a transaction of its own.
BATCH = 200


def expire_due(limit: int = BATCH) -> int:
    """Close requests whose lifetime is over and end their runs as their policies say; how many this call closed.

    Where a tool is to be called, nothing is called here: that is a worker's work.
    """
    due = ApprovalRequest.objects.filter(status=RequestStatus.OPEN, expires_at__lte=DbNow()).select_related("run")
    done = 0
    for request in due.order_by("id")[:limit]:
        try:
            done += expire(request)
        except Inconsistent:
            # Rolled back. One broken row must not keep the others from their end.
            logger.exception("request %s cannot expire", request.pk)
    return done


def _end(run: Run, request: ApprovalRequest, record: Record, present: str | None) -> Run | None:
    """End the waiting run as its policy says (`on_expire`); the run that goes on where a tool is called first.

    `present` is the hash of its spec as the file is now, which counts only there.
    """
    held = policy_of(request)
    event: Expired | Failed | Rejected = Expired(step=request.step, error=EXPIRED)
    match held.on_expire:
        case "fail":
            event = Failed(step=request.step, error=EXPIRED)
        case "reject":
            event = Rejected(step=request.step, reason=EXPIRED)
    tool = held.on_expire_tool
    if tool is not None:
        if present == record["spec_hash"]:
            return _calls(run, request, record, tool)
        words = f"{EXPIRED}; the tool {tool} was not called, because the spec's file is not the one that was asked for"
        event = Expired(step=request.step, error=words)
    outputs = codec.outputs_from(record)
    if not end_from_outside(run, where=Q(status=Status.AWAITING), event=event, outputs=outputs):
        raise _not_waiting(run)
    return None


def _rule(request: ApprovalRequest) -> str:
    """What the policy says of a request that nobody decided in time, for the proof."""
    held = policy_of(request)
    does = held.on_expire if held.on_expire_tool is None else f"execute_tool({held.on_expire_tool})"
    return "nobody decided in time" if request.mode == "record" else f"nobody decided in time; on_expire: {does}"


def _calls(run: Run, request: ApprovalRequest, record: Record, tool: str) -> Run:
    """A successor that calls the tool and then ends `expired`: a worker has it as it has any other."""
    given = {"approved": False, "reason": EXPIRED, "at": rfc3339(now()), "surface": "system", "on_expire": tool}
    decision = records.decision_from(record, request, **given)
    try:
        leave(run, Status.AWAITING)
    except NotPossible as error:
        raise _not_waiting(run) from error
    return go_on(run, outputs=records.outputs_ahead(record), decision=decision)


def _not_waiting(run: Run) -> Inconsistent:
    return Inconsistent(f"run {run.uuid} was not waiting although its record was there; nothing was changed")


def expire(request: ApprovalRequest) -> bool:
    """Whether this call closed the request and ended its run; Inconsistent, and nothing changed, where they differ."""
    store = records.store_of(request.workspace, request.agent_id)
    # Both may read a spec, which is not done inside the transaction.
    present = present_hash(request) if policy_of(request).on_expire_tool is not None else None
    channels_of(request)
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
        successor = _end(run, request, record, present) if request.mode != "record" else None
        audit.of_request(
            "expire",
            request,
            outcome="expired",
            actor=system("expiry"),
            successor=str(successor.uuid) if successor is not None else "",
            policy=jsontext.dumps(proof(request, Verdict(allowed=True, rule=_rule(request)))),
        )
        closed(request, outcome="expired", surface="system", at=now())
    return True
