"""The door through which a request is bound to its spec as the file is now (design 2, 3.3)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from approvals import audit, binding, policy, proposals, records
from approvals.acting import act_on
from approvals.binding import Binding
from approvals.deskwork import write_audience
from approvals.drift import place_of
from approvals.eligible import doubt
from approvals.errors import ActionChanged, Inconsistent
from approvals.models import ApprovalRequest, Audience, Edit, RequestStatus, Vote
from approvals.notices.outbox import ask_elsewhere
from approvals.policy import Verdict
from approvals.records import Record
from approvals.services import changed, checked_reason
from statestore.clock import now
from statestore.entries import Versioned
from statestore.faults import point
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.errors import Invalid, NotPossible
from workflows.models import WORKSPACE, Run, Status
from workflows.runs import pin
from workflows.times import rfc3339


def rebind(
    key: str, *, actor: Actor, reason: str, digest: str | None = None, workspace: str = WORKSPACE
) -> ApprovalRequest:
    """Go on under the spec as it is in its file now, at the step of the same name; somebody then decides as usual.

    Votes and edits are void, but for edits that are part of the outputs by now (`changes.settled`), with those who
    proposed them; how long it can be decided stays. Raises NotAllowed (before any look-up; never whoever
    started the run), ApprovalNotFound, Invalid, ActionChanged, NotPossible (with why), TooLarge, AlreadyResolved and
    Busy. A refusal changes nothing.
    """
    policy.need(may_rebind_at_all(actor))
    why = checked_reason(reason)
    if not why:
        message = "a reason is needed; say in a few words why"
        raise Invalid(f"reason: {message}", [{"path": "reason", "message": message}])

    def act(request: ApprovalRequest, stored: Versioned) -> ApprovalRequest | None:
        record: Record = stored.value
        policy.need(may_rebind(request, actor))
        records.check_format(record)
        if digest is not None and digest != record["digest"]:
            raise ActionChanged(shown=digest, present=record["digest"])
        found = binding.bound(request, record)
        _need_known_starter(request.run, found)
        place = place_of(request, record, found.file)
        point("rebind.before_claim")
        facts = {"actor": actor, "reason": why, "sent": digest is not None, "place": place}
        return request if _bind(request, record, stored.version, found, **facts) else None

    bound_request = act_on(key, act, workspace=workspace)
    point("rebind.committed")
    return bound_request


def may_rebind_at_all(actor: Actor) -> Verdict:
    """The permission that is always needed; asked before any look-up."""
    if policy.has_permission(actor, policy.REBIND):
        return Verdict(allowed=True, rule=f"holds {policy.REBIND}")
    return Verdict(allowed=False, rule=f"the permission {policy.REBIND} is needed; ask an administrator for it")


def may_rebind(request: ApprovalRequest, actor: Actor) -> Verdict:
    """Whether this actor may bind this request to a changed spec: never whoever started the run, whatever they hold."""
    verdict = may_rebind_at_all(actor)
    if verdict.allowed and actor.user_id == policy.starter_of(request.run):
        return Verdict(allowed=False, rule="whoever started the run may not bind it to a changed spec")
    return verdict


def _need_known_starter(run: Run, found: Binding) -> None:
    """Four eyes need to know whose the first two were; a run that somebody unknown started cannot be held to them."""
    unknown = run.surface == "cli" and run.started_by_user_id is None
    if unknown and found.pause.policy.approvers.four_eyes:
        raise NotPossible(
            "this cannot be bound to the spec as it is now: it asks for four eyes, and nobody knows who started the"
            " run; restore the file, or reject the request or cancel the run",
            status=Status.AWAITING.value,
        )


def _bind(request: ApprovalRequest, record: Record, version: int, found: Binding, **act: Any) -> bool:
    """In one transaction: the record under the version as read, the row, the run, what is void, the proof."""
    actor = act["actor"]
    details = {"from": record["spec_hash"], "to": found.file.hash, "place": act["place"]}
    details |= {"digest_before": record["digest"], "policy_before": jsontext.loads(request.policy)}
    with transaction.atomic():
        bound = found.record(record) | {"previous": _previous(request, record, found, actor)}
        if not proposals.replaced(request, version, bound):
            return False
        # Read again inside: who may do this is a question of now.
        policy.need(verdict := may_rebind(request, actor))
        pin(found.file, request.workspace)
        _move_run(request, found)
        _move_request(request, bound, found)
        Vote.objects.filter(request=request).delete()
        if "settled" not in record:
            Edit.objects.filter(request=request).delete()
        point("rebind.written")
        audit.of_request(
            "rebind",
            request,
            actor=actor,
            reason=act["reason"],
            digest_sent=act["sent"],
            policy=jsontext.dumps({"policy": jsontext.loads(request.policy), "rule": verdict.rule}),
            details=jsontext.dumps(details),
        )
        changed(request)
        ask_elsewhere(request)
    return True


def _previous(request: ApprovalRequest, record: Record, found: Binding, actor: Actor) -> dict[str, Any]:
    """What was shown until now, and what differs; `rebound` tells it from a request that was opened again."""
    pause = found.pause
    differs = "the spec changed, and what is asked is the same"
    if (pause.kind, pause.tool) != (record["kind"], record["tool"]):
        before, after = record["tool"] or record["kind"], pause.tool or pause.kind
        differs = f"the spec changed: {before} was asked about, and now {after} is"
    elif pause.digest != record["digest"]:
        differs = "the spec changed, and what is asked is not what was shown"
    return {
        "key": str(request.key),
        "digest": record["digest"],
        "action": record["action"],
        "what_differs": differs,
        "rebound": {"from": record["spec_hash"], "to": found.file.hash, "by": actor.label, "at": rfc3339(now())},
    }


def _move_run(request: ApprovalRequest, found: Binding) -> None:
    moved = Run.objects.filter(pk=request.run_id, status=Status.AWAITING).update(
        spec_hash=found.file.hash,
        source=str(found.file.path),
        step_index=found.pause.step_index,
        rebinds=F("rebinds") + 1,
    )
    if moved != 1:
        raise Inconsistent(f"run {request.run.uuid} was not waiting although its record was there; nothing was changed")
    request.run.refresh_from_db()


def _move_request(request: ApprovalRequest, bound: Record, found: Binding) -> None:
    """The row beside the record. How long it can be decided stays; reminders start anew, escalation counts on."""
    held = found.pause.policy
    later = held.escalate
    columns: dict[str, Any] = {
        "spec_hash": bound["spec_hash"],
        "step_index": bound["step_index"],
        "kind": bound["kind"],
        "tool": bound["tool"] or "",
        "reason": bound["reason"],
        "digest": bound["digest"],
        "policy": held.model_dump_json(exclude_defaults=True),
        "doubt": doubt(held, request.run),
        "remind_at": now() + timedelta(seconds=held.remind_every) if held.remind_every else None,
        "escalate_at": request.created_at + timedelta(seconds=later.after) if later is not None else None,
        "escalated_at": None,
    }
    if ApprovalRequest.objects.filter(pk=request.pk, status=RequestStatus.OPEN).update(**columns) != 1:
        raise Inconsistent(f"request {request.pk} was not open although its record was there; nothing was changed")
    for name, value in columns.items():
        setattr(request, name, value)
    Audience.objects.filter(request=request).delete()
    write_audience(request, held)
