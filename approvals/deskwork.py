"""The desk that the driver hands its pauses to (workflows/desk.py)."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from approvals import audit, records
from approvals.eligible import doubt
from approvals.models import ApprovalRequest, Audience, AuditEntry, RequestStatus
from approvals.notices.outbox import tell
from approvals.policy import Verdict
from approvals.proposals import keep_proposers
from approvals.records import Record
from approvals.services import close_request, proof
from statestore.clock import now
from statestore.conf import value as setting
from statestore.entries import ABSENT
from statestore.errors import TooLarge
from workflows.actors import Actor
from workflows.desk import Ask, CannotPause, Consideration, Decided, Reset
from workflows.engine import jsontext
from workflows.engine.effects import Decision, Pause
from workflows.memory_run import by_rule
from workflows.models import Run
from workflows.spec.policy_model import Policy
from workflows.successors import call_beside
from workflows.times import rfc3339


class ApprovalDesk:
    """One record and one request a pause, written in the driver's transaction."""

    def consider(self, run: Run, pause: Pause) -> Consideration:
        """Decided where the policy's rules decided when the gate opened; a person otherwise.

        A request beside the run that is open already is not decided by a rule that says something else by now.
        """
        decision = by_rule(pause)
        if decision is None or _beside(run, pause) is not None:
            return Ask()
        return Decided(decision=replace(decision, at=rfc3339(now())))

    def decided(self, run: Run, pause: Pause, decision: Decision) -> None:
        """The audit entry of a rule's decision: there is no record and no request.

        One is enough where the run does not keep the decision, and enters the step again after a takeover.
        """
        if pause.policy.mode == "record" and _proved(run, pause):
            return
        companion = None
        if pause.policy.mode == "record" and pause.policy.on_decision.of(decision.approved) is not None:
            outputs = pause.outputs
            companion = call_beside(run, step=pause.step, spec_hash=run.spec_hash, outputs=outputs, decision=decision)
        audit.record(
            "decide",
            outcome="approved" if decision.approved else "rejected",
            actor=Actor(label="rule", surface="rule", detail=decision.by or ""),
            run=str(run.uuid),
            successor=str(companion.uuid) if companion is not None else "",
            agent_id=run.agent_id,
            spec_hash=run.spec_hash,
            workspace=run.workspace,
            step=pause.step,
            reason=decision.reason or "",
            digest=pause.digest,
            policy=_proof(pause.policy, decision.by or ""),
        )

    def open(self, run: Run, pause: Pause) -> str:
        """The key of a new record and request. CannotPause when the state is over the record's limit."""
        opened = _beside(run, pause)
        if opened is not None:
            return str(opened.key)
        earlier = pause.differs_from.key if pause.differs_from else None
        try:
            request = open_request(run, records.make(run, pause), pause.policy, key=uuid.uuid4(), reopened_from=earlier)
        except TooLarge as error:
            raise CannotPause(f"step {pause.step}: the run cannot wait: {error}") from error
        return str(request.key)

    def outputs(self, run: Run) -> dict[str, Any] | None:
        """The outputs of a waiting run, out of its record."""
        request = _open_request(run)
        if request is None:
            return None
        return records.peek(request)

    def on_cancel(self, run: Run, actor: Actor, reason: str) -> dict[str, Any] | None:
        """Claim the record for the canceller, close the request, write the audit entry."""
        request = _open_request(run)
        if request is None:
            return None
        store = records.store_of(run.workspace, run.agent_id)
        record = store.claim(records.store_key(request.key))
        if record is ABSENT:
            return None
        close_request(request, RequestStatus.CANCELLED)
        verdict = Verdict(allowed=True, rule="may operate runs")
        self._note(
            "cancel",
            run,
            actor,
            reason,
            key=str(request.key),
            outcome="cancelled",
            digest=request.digest,
            policy=jsontext.dumps(proof(request, verdict)),
        )
        return dict(record)

    def note(self, act: str, run: Run, actor: Actor, reason: str, successor: Run | None = None) -> None:
        """The audit entry of an act on a run."""
        self._note(act, run, actor, reason, successor=str(successor.uuid) if successor is not None else "")

    def note_reset(self, what: Reset, actor: Actor, reason: str) -> None:
        """The audit entry of an operator's reset; no step and no spec belong to it."""
        audit.record(
            "reset",
            actor=actor,
            run=what.run,
            agent_id=what.agent_id,
            spec_hash="",
            workspace=what.workspace,
            reason=reason,
            details=jsontext.dumps({"what": what.what, **what.details}),
        )

    def _note(self, act: str, run: Run, actor: Actor, reason: str, **facts: Any) -> None:
        audit.record(
            act,
            actor=actor,
            run=str(run.uuid),
            agent_id=run.agent_id,
            spec_hash=run.spec_hash,
            workspace=run.workspace,
            step=run.step,
            reason=reason,
            **facts,
        )


def open_request(
    run: Run, record: Record, policy: Policy, *, key: uuid.UUID, reopened_from: uuid.UUID | str | None
) -> ApprovalRequest:
    """Write the record and the request beside it, and tell who is to be told. TooLarge over the record's limit."""
    lifetime = timedelta(seconds=policy.expires_in or setting("KAMPONG_APPROVAL_TTL"))
    moment = now()
    written = records.store_of(run.workspace, run.agent_id).put(records.store_key(key), record, ttl=lifetime)
    request = ApprovalRequest.objects.create(
        key=key,
        workspace=run.workspace,
        run=run,
        agent_id=run.agent_id,
        step=record["step"],
        step_index=record["step_index"],
        kind=record["kind"],
        phase=record["phase"],
        reason=record["reason"],
        tool=record["tool"] or "",
        policy=policy.model_dump_json(exclude_defaults=True),
        mode=policy.mode,
        doubt=doubt(policy, run),
        digest=record["digest"],
        spec_hash=record["spec_hash"],
        reopened_from=reopened_from,
        created_at=moment,
        expires_at=written.expires_at or moment + lifetime,
        remind_at=_after(moment, policy.remind_every),
        escalate_at=_after(moment, policy.escalate.after if policy.escalate else None),
    )
    write_audience(request, policy)
    if reopened_from is not None and record.get("edits"):
        # Whoever proposed what stands may still not approve it alone.
        keep_proposers(request, str(reopened_from))
    tell(request, "opened")
    return request


def _after(moment: datetime, seconds: int | None) -> datetime | None:
    return moment + timedelta(seconds=seconds) if seconds else None


def write_audience(request: ApprovalRequest, policy: Policy) -> None:
    """The rows by which the queue is filtered; where the policy says nothing of who decides, there are none."""
    approvers, escalate = policy.approvers, policy.escalate
    to = [("user", name) for name in approvers.users or ()] + [("group", name) for name in approvers.groups or ()]
    to += [("later", name) for name in escalate.groups] if escalate is not None else []
    to += [("proxy", "")] if approvers.delegate else []
    if to:
        Audience.objects.bulk_create(Audience(request=request, kind=kind, name=name) for kind, name in to)


def _beside(run: Run, pause: Pause) -> ApprovalRequest | None:
    """The request that this step of the chain opened beside the run, when it was entered before."""
    if pause.policy.mode != "record":
        return None
    chain = Q(run=run.root_id_or_own) | Q(run__root=run.root_id_or_own)
    return ApprovalRequest.objects.filter(chain, step_index=pause.step_index, mode="record").first()


def _proved(run: Run, pause: Pause) -> bool:
    """By the digest as well: steps may share a name, and each has its proof."""
    entries = AuditEntry.objects.filter(run=str(run.uuid), act="decide", step=pause.step, surface="rule")
    return entries.filter(digest=pause.digest).exists()


def _proof(policy: Policy, rule: str) -> str:
    return jsontext.dumps({"policy": policy.model_dump(mode="json", exclude_defaults=True), "rule": rule})


def _open_request(run: Run) -> ApprovalRequest | None:
    """The request that the run waits for."""
    waiting = ApprovalRequest.objects.filter(run=run, status=RequestStatus.OPEN, mode="gate").select_related("run")
    return waiting.order_by("id").last()
