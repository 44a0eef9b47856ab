"""The door through which what waits is changed by a proposal that somebody else decides (design 2; spec 1.2)."""

from __future__ import annotations

from django.db import transaction

from approvals import answers, changes, policy, proposals, records
from approvals.acting import act_on
from approvals.changes import Difference, Editable, Edited, differences, offered, preview
from approvals.eligible import deciders, doubt
from approvals.errors import ActionChanged
from approvals.models import ApprovalRequest
from approvals.policy import Verdict
from approvals.records import Record
from approvals.services import changed, checked_reason, present_hash, proof
from statestore.entries import Versioned
from statestore.faults import point
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.errors import Invalid, SpecChanged
from workflows.models import WORKSPACE

__all__ = ["Difference", "Editable", "Edited", "differences", "edit_request", "offered", "preview"]


def edit_request(
    key: str,
    *,
    edits: Json,
    actor: Actor,
    reason: str | None = None,
    digest: str | None = None,
    workspace: str = WORKSPACE,
) -> ApprovalRequest:
    """Propose a change of what waits: votes are void, and the digest that counts from now on is the edited one.

    The edits lie over those that stand; values as they were at first take an edit back. Whoever may decide may propose,
    and under four eyes somebody else approves.

    Raises NotAllowed (before any look-up), ApprovalNotFound, SpecChanged, ActionChanged, Invalid (field by field),
    NotPossible, TooLarge, AlreadyResolved and Busy. A refusal changes nothing.
    """
    policy.need(policy.may_decide_at_all(actor))
    why = checked_reason(reason)

    def act(request: ApprovalRequest, stored: Versioned) -> ApprovalRequest | None:
        edited = _checked(request, stored.value, edits, actor, digest)
        point("edit.before_claim")
        return request if _put(request, stored, edited, actor, why, sent=digest is not None) else None

    changed_request = act_on(key, act, workspace=workspace)
    point("edit.committed")
    return changed_request


def _checked(request: ApprovalRequest, record: Record, edits: Json, actor: Actor, digest: str | None) -> Edited:
    """Everything that can refuse: who, the spec, the action, the edits."""
    _need_allowed(request, actor)
    records.check_format(record)
    present = present_hash(request)
    if present != record["spec_hash"]:
        raise SpecChanged(recorded=record["spec_hash"], present=present)
    if digest is not None and digest != record["digest"]:
        raise ActionChanged(shown=digest, present=record["digest"])
    answers.check_digest(policy.policy_of(request), surface=actor.surface, digest=digest)
    edited = preview(request, record, edits)
    if edited.edits == changes.standing(record):
        message = "nothing is changed by this: these values stand already"
        raise Invalid(f"edits: {message}", [{"path": "edits", "message": message}])
    return edited


def _need_allowed(request: ApprovalRequest, actor: Actor) -> Verdict:
    verdict = policy.may_decide(request, actor)
    policy.need(verdict)
    return verdict


def _put(request: ApprovalRequest, stored: Versioned, edited: Edited, actor: Actor, reason: str, *, sent: bool) -> bool:
    """In one transaction: the edited record under the version as read, the proposal, its proof."""
    with transaction.atomic():
        if not proposals.put(request, stored.value, stored.version, edited):
            return False
        # Read again inside: who may decide is a question of now.
        evaluated = jsontext.dumps(proof(request, _need_allowed(request, actor)))
        proposals.note(request, stored.value, edited, actor=actor, reason=reason, sent=sent, proof=evaluated)
        point("edit.written")
        doubted(request)
        changed(request)
    return True


def doubted(request: ApprovalRequest) -> None:
    """Say where nobody is left who can satisfy the policy: under four eyes a proposer may not approve."""
    held = policy.policy_of(request)
    words = doubt(held, request.run, escalated=request.escalated_at is not None)
    left = len(deciders(request)) if held.approvers.four_eyes else held.approvers.quorum
    if not words and left < held.approvers.quorum:
        less = "nobody" if left == 0 else f"only {left}"
        words = f"{less} but those who proposed the edit may approve it today, and {held.approvers.quorum} must"
    if words != request.doubt:
        request.doubt = words
        ApprovalRequest.objects.filter(pk=request.pk).update(doubt=words)
