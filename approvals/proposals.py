"""Writing an edit that stands from now on, inside the transaction of the act that makes it (spec 1.2, `editable`)."""

from __future__ import annotations

from approvals import audit, changes, records
from approvals.changes import Edited
from approvals.models import ApprovalRequest, Edit, RequestStatus, Vote
from approvals.records import Record
from statestore.clock import now
from statestore.errors import TooLarge as OverTheCap
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.errors import NotAllowed, TooLarge


def put(request: ApprovalRequest, record: Record, version: int, edited: Edited) -> bool:
    """The edited record in place of the one read, with that version, and the row beside it; votes are void.

    False when somebody was quicker, or its time is over. TooLarge when it cannot be kept.
    """
    if not replaced(request, version, changes.with_edits(record, edited)):
        return False
    request.digest, request.reason = edited.digest, edited.reason
    rows = ApprovalRequest.objects.filter(pk=request.pk, status=RequestStatus.OPEN)
    rows.update(digest=request.digest, reason=request.reason)
    Vote.objects.filter(request=request).delete()
    return True


def replaced(request: ApprovalRequest, version: int, record: Record) -> bool:
    """Whether this record took the place of the one with that version. TooLarge when it cannot be kept."""
    store = records.store_of(request.workspace, request.agent_id)
    try:
        return store.replace(records.store_key(request.key), version, record)
    except OverTheCap as error:
        raise TooLarge(f"the request cannot hold this: {error}", limit=error.limit) from error


def note(
    request: ApprovalRequest, record: Record, edited: Edited, *, actor: Actor, reason: str, sent: bool, proof: str
) -> None:
    """Who proposed it, beside the request and in the audit, with the values before and after.

    Where it takes back everything that was proposed, nobody is a proposer any more. `sent`: the digest came with it;
    `proof` is the policy as it was evaluated.
    """
    if actor.user_id is None:
        raise NotAllowed("only people propose an edit", rule="only people propose an edit")
    stood = {one.path: one.after for one in changes.differences(record)}
    told = {
        one.path: {"before": stood.get(one.path, one.before), "after": one.after}
        for one in edited.differences
        if one.path not in stood or stood[one.path] != one.after
    }
    told |= {
        one.path: {"before": one.after, "after": one.before}
        for one in changes.differences(record)
        if one.path not in edited.edits
    }
    if edited.edits:
        Edit.objects.create(
            request=request,
            user_id=actor.user_id,
            label=actor.label,
            edits=jsontext.dumps(dict(edited.edits)),
            digest=edited.digest,
            reason=reason,
            surface=actor.surface,
            at=now(),
        )
    else:
        Edit.objects.filter(request=request).delete()
    audit.of_request(
        "edit",
        request,
        actor=actor,
        reason=reason,
        digest=edited.digest,
        digest_sent=sent,
        policy=proof,
        details=jsontext.dumps({"edits": told}),
    )


def keep_proposers(request: ApprovalRequest, earlier_key: str) -> None:
    """Whoever proposed what an earlier request of the same step was approved with: it is part of this one as well."""
    Edit.objects.bulk_create(
        Edit(
            request=request,
            user_id=one.user_id,
            label=one.label,
            edits=one.edits,
            digest=one.digest,
            reason=one.reason,
            surface=one.surface,
            at=one.at,
        )
        for one in Edit.objects.filter(request__key=earlier_key).order_by("id")
    )
