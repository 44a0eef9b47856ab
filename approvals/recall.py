"""Taking an approval back while it waits for its effect (spec 1.2, `recall`; design 3.3)."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import F

from approvals import audit, kept, policy
from approvals.acting import find_request
from approvals.deskwork import open_request
from approvals.errors import ApprovalNotFound, Inconsistent, in_words
from approvals.models import ApprovalRequest, RequestStatus
from approvals.notices.outbox import channels_of, tell
from approvals.queue import decision_of
from approvals.records import Record
from approvals.services import checked_reason
from statestore.clock import DbNow, now
from statestore.faults import point
from workflows import codec
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.engine.events import AwaitingApproval
from workflows.errors import Invalid, NotPossible
from workflows.models import WORKSPACE, Run, Status
from workflows.runs import newest
from workflows.successors import wait_again
from workflows.times import rfc3339


def withdrawable(request: ApprovalRequest) -> bool:
    """Whether the approval of this request, as it is at hand, can still be taken back: its effect waits for that."""
    until = request.recall_until
    return request.status == RequestStatus.DECIDED and until is not None and until > now()


def withdraw(key: str, *, actor: Actor, reason: str, workspace: str = WORKSPACE) -> ApprovalRequest:
    """Take an approval back before it had an effect: the request that is open in its place, under a new key.

    Whoever may decide the request may withdraw its approval, alone also where several approved, and whoever started
    the run as well. The new request has a lifetime of its own and no votes; edits that stood still stand, and are still
    whose they were. The old one stays as its history.

    Raises NotAllowed (before any look-up), Invalid (no reason), ApprovalNotFound, and NotPossible when there is nothing
    to withdraw: it was rejected, or never decided, or has gone on. A refusal changes nothing.
    """
    policy.need(policy.may_decide_at_all(actor))
    words = checked_reason(reason)
    if not words:
        raise Invalid("a reason is needed", [{"path": "reason", "message": "say why, in a few words"}])
    request = find_request(key, workspace)
    if request is None:
        raise ApprovalNotFound(key)
    policy.need(policy.may_decide(request, actor))
    if not withdrawable(request):
        raise _refusal(request)
    channels_of(request)  # a spec that has to be read for it is not read inside the transaction
    point("withdraw.before_claim")
    with transaction.atomic():
        reopened = _withdraw(request, actor, words)
    point("withdraw.committed")
    return reopened


def _withdraw(request: ApprovalRequest, actor: Actor, reason: str) -> ApprovalRequest:
    """In one transaction: the run that waits is stopped, which a worker may do first; then all is as it was before."""
    # Read again inside: who may decide is a question of now.
    verdict = policy.may_decide(request, actor)
    policy.need(verdict)
    stopped = _stopped(request, actor, reason)
    record = kept.take(request, stopped)
    if record is None:
        raise Inconsistent(f"request {request.pk} waits for its recall without what is kept for it")
    reopened = _open_again(request, record, stopped, _why(stopped, actor, reason))
    closed = ApprovalRequest.objects.filter(pk=request.pk, status=RequestStatus.DECIDED).update(
        status=RequestStatus.WITHDRAWN, revision=F("revision") + 1
    )
    if closed != 1:
        raise Inconsistent(f"request {request.pk} was not decided although its run waited; nothing was changed")
    tell(request, "changed")
    audit.of_request(
        "withdraw",
        request,
        outcome="withdrawn",
        actor=actor,
        run=str(stopped.uuid),
        successor=str(reopened.run.uuid),
        reason=reason,
        policy=jsontext.dumps({"policy": jsontext.loads(request.policy), "rule": verdict.rule}),
        details=jsontext.dumps({"reopened_as": str(reopened.key)}),
    )
    return reopened


def _stopped(request: ApprovalRequest, actor: Actor, reason: str) -> Run:
    """The run that waited for the end of the recall, `queued -> cancelled` by one filtered update.

    NotPossible when a worker, or somebody who cancelled it, was first. The claim of a worker looks at `not_before` as
    well: whichever update finds the row has it.
    """
    waits = Run.objects.filter(resumed_from=request.run_id, status=Status.QUEUED, lease_token=0, not_before__gt=DbNow())
    found = waits.first()
    moved = found is not None and waits.filter(pk=found.pk).update(
        status=Status.CANCELLED,
        outputs="",
        error=f"its approval was withdrawn by {actor.label}: {reason}",
        ended_at=DbNow(),
    )
    if found is None or moved != 1:
        raise _refusal(request)
    point("withdraw.claimed")
    return found


def _open_again(request: ApprovalRequest, record: Record, stopped: Run, why: str) -> ApprovalRequest:
    """The run waits where it waited, for a request like the one before."""
    key = uuid.uuid4()
    event = AwaitingApproval(
        step=record["step"], kind=record["kind"], reason=record["reason"], tool=record["tool"], key=str(key)
    )
    run = wait_again(request.run, stopped, outputs=codec.outputs_from(record), event=event)
    record["run"] = str(run.uuid)
    previous = {"key": str(request.key), "digest": record["digest"], "action": record["action"], "what_differs": why}
    return open_request(
        run, {**record, "previous": previous}, policy.policy_of(request), key=key, reopened_from=request.key
    )


def _why(stopped: Run, actor: Actor, reason: str) -> str:
    decision = codec.load_decision(stopped.decision)
    by = decision.by if decision is not None else "somebody"
    return f"nothing: the approval by {by} was withdrawn by {actor.label}: {reason}"


def _refusal(request: ApprovalRequest) -> NotPossible:
    """Why there is nothing to withdraw, from what is true now."""
    request.refresh_from_db()
    run = newest(request.run)
    status = "running" if run.status == Status.QUEUED else str(run.status)
    if request.status == RequestStatus.OPEN:
        return NotPossible("nobody decided this yet: there is nothing to withdraw", status=status)
    told = decision_of(str(request.key), request.workspace)
    if told is None or told["outcome"] != "approved":
        was = in_words(told) if told is not None else f"{request.status} already"
        return NotPossible(f"only an approval can be withdrawn, and this was {was}", status=status)
    until = request.recall_until
    if until is None:
        words = "this approval took effect at once: its policy gives no time to withdraw it (`recall`)"
    elif run.status == Status.CANCELLED:
        words = "the run was cancelled meanwhile; there is nothing to withdraw any more"
    else:
        words = f"it went on already: it could be withdrawn until {rfc3339(until)}"
    return NotPossible(f"{words}. Look at the run.", status=status)
