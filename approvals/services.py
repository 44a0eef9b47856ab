"""The door through which everybody decides: admin, REST, Slack, the command line, rules (design 3.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from approvals import answers, audit, ballots, changes, eligible, kept, looking, policy, proposals, records
from approvals.acting import act_on
from approvals.changes import Edited
from approvals.errors import ActionChanged, Inconsistent, in_words
from approvals.metrics import closed, timed
from approvals.models import ApprovalRequest, RequestStatus
from approvals.notices.outbox import tell
from approvals.policy import Verdict
from approvals.queue import decision_of
from approvals.records import Record
from statestore.clock import DbNow, now
from statestore.entries import ABSENT, Versioned
from statestore.faults import point
from workflows import registry
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.engine.effects import Decision
from workflows.engine.gates import REJECTED
from workflows.engine.values import Json
from workflows.errors import Invalid, NothingPending, SpecChanged
from workflows.memory_run import ends
from workflows.models import WORKSPACE, Run, Status
from workflows.runs import check_text, newest
from workflows.successors import call_beside, end_rejected, go_on, leave
from workflows.times import rfc3339

REASON_LIMIT = 4000


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`run` is the fresh run that goes on (or the final, rejected one); `decision` is what the queue will say.

    Where more people must approve, `run` still waits, and `votes` says how many have and how many must.
    """

    run: Run
    decision: dict[str, Any]
    votes: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What the caller wants, checked for shape.

    With what is found out about it before the transaction: `seen` of a clipped action, and whether the spec is still
    the one that was asked under (`same_spec`, where that matters).
    """

    approved: bool
    reason: str
    actor: Actor
    digest: str | None
    answers: Json | None
    edited: Edited | None = None
    break_glass: bool = False
    seen: dict[str, Any] = field(default_factory=dict)
    same_spec: bool = True

    def __post_init__(self) -> None:
        if self.break_glass and not self.approved:
            message = "a rejection needs no broken glass; leave it out"
            raise Invalid(f"breakGlass: {message}", [{"path": "breakGlass", "message": message}])


@timed
def decide(
    key: str,
    *,
    approved: bool,
    actor: Actor,
    reason: str | None = None,
    digest: str | None = None,
    answers: Json | None = None,
    edits: Json | None = None,
    break_glass: bool = False,
    workspace: str = WORKSPACE,
    agent_id: str | None = None,
) -> Outcome:
    """Decide a pending request exactly once, however many press at the same time.

    `break_glass` approves in spite of four eyes, and alone where several must: it needs its permission and a reason.
    `edits` change what is approved in the same act, and `digest` is that of what was shown before them. Where several
    must approve, they are an edit and a vote for it; under four eyes an edit is a proposal and refused here.

    Raises NotAllowed (before any look-up), ApprovalNotFound, SpecChanged (approve only), ActionChanged, Invalid,
    AlreadyResolved (the loser of a race) and Busy. A refusal changes and consumes nothing. `agent_id` narrows the
    scope: a key of another workflow is as good as absent.
    """
    person = policy.Person(actor)
    policy.need(person.at_all)
    why = checked_reason(reason)
    asked = _Asked(approved=approved, reason=why, actor=actor, digest=digest, answers=answers, break_glass=break_glass)

    def act(request: ApprovalRequest, stored: Versioned) -> Outcome | None:
        point("decide.record_read")
        person.look_at([request])  # a try that follows a lost one meets other votes
        complete = _checked(request, stored.value, asked, edits, person)
        point("decide.before_claim")
        return _claim(request, stored, complete)

    outcome = act_on(key, act, workspace=workspace, agent_id=agent_id)
    point("decide.committed")
    return outcome


def decide_run(run: Run, *, workspace: str = WORKSPACE, **asked: Any) -> Outcome:
    """Decide the pending request of a run's chain. NothingPending when it does not wait for anybody."""
    policy.need(policy.may_decide_at_all(asked["actor"]))
    present = newest(run)
    waits = ApprovalRequest.objects.filter(run=present, status=RequestStatus.OPEN, mode="gate")
    request = waits.order_by("id").last()
    if present.status != Status.AWAITING or request is None:
        status = "running" if present.status == Status.QUEUED else present.status
        raise NothingPending(f"the run is {status}; nothing is pending{_last_ending(present)}", status=status)
    return decide(str(request.key), workspace=workspace, **asked)


def _last_ending(run: Run) -> str:
    """What became of what a run waited for last: whoever comes late is told who was quicker, or who cancelled it."""
    last = ApprovalRequest.objects.filter(run=run, mode="gate").order_by("id").last()
    if last is None and run.resumed_from_id is not None:
        last = ApprovalRequest.objects.filter(run=run.resumed_from_id, mode="gate").order_by("id").last()
    told = decision_of(str(last.key), run.workspace) if last is not None else None
    return f" ({in_words(told)})" if told is not None else ""


def checked_reason(reason: str | None) -> str:
    text = (reason or "").strip()
    if len(text) > REASON_LIMIT:
        message = f"at most {REASON_LIMIT} characters"
        raise Invalid(f"reason: {message}", [{"path": "reason", "message": message}])
    check_text(text, "reason")
    return text


def _checked(request: ApprovalRequest, record: Record, asked: _Asked, edits: Json, person: policy.Person) -> _Asked:
    """Everything that can refuse, before anything is consumed: who, the spec, the action, the answers.

    What was asked comes back with the defaults of the form.
    """
    policy.need(person.may(request, approve=asked.approved, break_glass=asked.break_glass))
    records.check_format(record)
    held = policy.policy_of(request)
    if asked.approved or held.goes_on_after_no:
        present = present_hash(request)
        asked = replace(asked, same_spec=present == record["spec_hash"])
        if asked.approved and not asked.same_spec:
            raise SpecChanged(recorded=record["spec_hash"], present=present)
    if asked.digest is not None and asked.digest != record["digest"]:
        raise ActionChanged(shown=asked.digest, present=record["digest"])
    answers.check_digest(held, surface=asked.actor.surface, digest=asked.digest)
    answers.check_reason(held, approved=asked.approved, reason=asked.reason, break_glass=asked.break_glass)
    given = answers.checked(held, approved=asked.approved, answers=asked.answers)
    asked = replace(asked, answers=given, seen=looking.proof(request, record, asked.actor))
    return asked if edits is None else replace(asked, edited=_edited(request, record, asked, edits))


def _edited(request: ApprovalRequest, record: Record, asked: _Asked, edits: Json) -> Edited | None:
    """What would run with the edits; None where they change nothing. Invalid where they are no part of a decision."""
    changes.need_editable(request)
    message = ""
    if not asked.approved:
        message = "a rejection changes nothing; leave them out"
    elif policy.policy_of(request).approvers.four_eyes:
        message = "under four eyes an edit is proposed by one and approved by another: propose it by itself"
    if message:
        raise Invalid(f"edits: {message}", [{"path": "edits", "message": message}])
    edited = changes.preview(request, record, edits)
    return None if edited.edits == changes.standing(record) else edited


def present_hash(request: ApprovalRequest) -> str | None:
    """The hash of the request's spec as its file is on disk now."""
    return registry.registry().present_hash(request.agent_id, request.run.source)


def _claim(request: ApprovalRequest, stored: Versioned, asked: _Asked) -> Outcome | None:
    """In one transaction: version bump, counted delete, proof, successor. None when another was quicker.

    Where more people must approve, the vote is stored in place of all that follows the bump.
    """
    store = records.store_of(request.workspace, request.agent_id)
    name = records.store_key(request.key)
    with transaction.atomic():
        if not store.bump(name, stored.version):
            return None
        # Read again inside: who may decide is a question of now.
        verdict = policy.may_decide(request, asked.actor, approve=asked.approved, break_glass=asked.break_glass)
        policy.need(verdict)
        version = stored.version + 1
        if asked.edited is not None:
            if not _edit(request, stored.value, version, asked, asked.edited, verdict):
                transaction.set_rollback(True)
                return None
            version += 1
        cast = ballots.cast(request, asked, verdict) if asked.approved and not asked.break_glass else None
        if cast is not None:
            changed(request)
            return Outcome(run=request.run, decision=cast.decision, votes=cast.votes)
        record = store.claim(name, version)
        if record is ABSENT:
            # The row is locked by the bump above: only its expiry can have come between.
            transaction.set_rollback(True)
            return None
        point("decide.claimed")
        return _settle(request, record, asked, verdict)


def _edit(
    request: ApprovalRequest, record: Record, version: int, asked: _Asked, edited: Edited, verdict: Verdict
) -> bool:
    """Put the edits in place of what was shown; where others must approve as well, they are told whose they are."""
    if not proposals.put(request, record, version, edited):
        return False
    if policy.policy_of(request).approvers.quorum > 1:
        evaluated, sent = jsontext.dumps(proof(request, verdict)), asked.digest is not None
        proposals.note(request, record, edited, actor=asked.actor, reason=asked.reason, sent=sent, proof=evaluated)
    return True


def _settle(request: ApprovalRequest, record: Record, asked: _Asked, verdict: Verdict) -> Outcome:
    """With the claim in hand: close the request, leave the old run, make the successor, write the proof."""
    details = asked.seen | ({"glass_broken": True} if asked.break_glass else {})
    if asked.approved and changes.standing(record):
        details["edits"] = changes.facts(changes.differences(record))
    moment = now()
    held = policy.policy_of(request)
    recall = held.recall if asked.approved and request.mode == "gate" else None
    close_request(request, RequestStatus.DECIDED)
    run = Run.objects.get(pk=request.run_id)
    if not asked.same_spec:
        details["not_called"] = "the spec changed, so nothing that it says about a rejection was done"
    decision = _decision(request, record, asked, moment, goes_on=held.goes_on_after_no and asked.same_spec)
    follow = _companion if request.mode == "record" else _successor
    successor = follow(request, run, record, decision)
    until = Run.objects.values_list("not_before", flat=True).get(pk=successor.pk) if recall else None
    if until is not None:
        # The same instant at both: what people are told, and what the worker and the withdrawal go by.
        ApprovalRequest.objects.filter(pk=request.pk).update(recall_until=until)
        details["recall_until"] = rfc3339(until)
    entry = audit.of_request(
        "decide",
        request,
        outcome="approved" if asked.approved else "rejected",
        actor=asked.actor,
        successor=str(successor.uuid) if successor.pk != run.pk else "",
        reason=asked.reason,
        digest_sent=asked.digest is not None,
        answers="" if asked.answers is None else jsontext.dumps(asked.answers),
        policy=jsontext.dumps(proof(request, verdict)),
        details=jsontext.dumps(details) if details else "",
    )
    if asked.break_glass:
        others = sorted(eligible.everybody(request) - {asked.actor.user_id or 0})
        tell(request, "glass_broken", users=others, by=asked.actor.label, reason=asked.reason)
    closed(request, outcome=entry.outcome, surface=entry.surface, at=moment)
    told = {"outcome": entry.outcome, "by": entry.actor, "at": rfc3339(entry.at), "surface": entry.surface}
    return Outcome(run=successor, decision=told | ({"recallUntil": rfc3339(until)} if until is not None else {}))


def proof(request: ApprovalRequest, verdict: Verdict) -> dict[str, Any]:
    """The policy as it was evaluated: what it says, the rule that allowed it, and the votes that counted."""
    cast = ballots.proof(ballots.standing(request)["by"])
    evaluated = {"policy": jsontext.loads(request.policy), "rule": verdict.rule}
    return {**evaluated, "votes": cast} if cast else evaluated


def _decision(request: ApprovalRequest, record: Record, asked: _Asked, moment: datetime, *, goes_on: bool) -> Decision:
    return records.decision_from(
        record,
        request,
        approved=asked.approved,
        reason=asked.reason or None,
        by=asked.actor.label,
        at=rfc3339(moment),
        valid_until=ends(policy.policy_of(request), moment) if asked.approved else None,
        surface=asked.actor.surface,
        answers=asked.answers,
        goes_on=goes_on and not asked.approved,
    )


def _successor(request: ApprovalRequest, run: Run, record: Record, decision: Decision) -> Run:
    """The run that goes on: queued where there is something to do, or final already after a rejection.

    Where the approval can be withdrawn first, it waits for that, and what it does not hold of the record is kept.
    """
    leave(run, Status.AWAITING)
    if not decision.approved:
        outputs = records.outputs_ahead(record)
        if decision.goes_on:
            return go_on(run, outputs=outputs, decision=decision)
        return end_rejected(run, outputs=outputs, decision=decision, reason=decision.reason or REJECTED)
    outputs, recall = records.outputs_approved(record), policy.policy_of(request).recall
    if recall:
        kept.keep(request, record, outputs, timedelta(seconds=recall))
    return go_on(run, outputs=outputs, decision=decision, not_before=DbNow(recall) if recall else None)


def _companion(request: ApprovalRequest, run: Run, record: Record, decision: Decision) -> Run:
    """The run of what is called on the decision of a recorded request; the one that asked where nothing is."""
    if policy.policy_of(request).on_decision.of(decision.approved) is None:
        return run
    if not decision.approved and not decision.goes_on:
        return run
    spec_hash, outputs = record["spec_hash"], records.outputs_ahead(record)
    return call_beside(run, step=request.step, spec_hash=spec_hash, outputs=outputs, decision=decision)


def close_request(request: ApprovalRequest, status: RequestStatus) -> None:
    """`open -> status` by a filtered update, in the transaction that took the record; whoever was told is told."""
    closed = ApprovalRequest.objects.filter(pk=request.pk, status=RequestStatus.OPEN).update(
        status=status, closed_at=now(), revision=F("revision") + 1
    )
    if closed != 1:
        raise Inconsistent(f"request {request.pk} was not open although its record was there; nothing was changed")
    tell(request, "closed")


def changed(request: ApprovalRequest) -> None:
    """Count a change of an open request, in the transaction of the act; what was posted is brought up to date."""
    ApprovalRequest.objects.filter(pk=request.pk).update(revision=F("revision") + 1)
    tell(request, "changed")
