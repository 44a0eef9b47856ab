"""One request with its record, its proof and its run, as they are read together; and what mends share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from approvals import audit, records
from approvals.models import ApprovalRequest, AuditEntry, RequestStatus
from approvals.notices.outbox import tell
from approvals.policy import policy_of
from statestore.clock import DbNow, now
from statestore.keys import shown
from statestore.models import StateRecord
from workflows import codec
from workflows.desk import desk
from workflows.endings import Ending, end_from_outside
from workflows.engine.events import Cancelled, Expired, Failed, Interrupted, Rejected
from workflows.engine.gates import EXPIRED, REJECTED
from workflows.engine.values import Outputs
from workflows.models import Run, Status
from workflows.repair.findings import By, Moved, need
from workflows.tasks import enqueue

#: What says how a request ended: what a surface tells of it, or what an earlier repair wrote down.
ENDINGS = (*audit.OUTCOME_ACTS, "repair")
_CLOSED_AS = {
    "approved": RequestStatus.DECIDED,
    "rejected": RequestStatus.DECIDED,
    "expired": RequestStatus.EXPIRED,
    "withdrawn": RequestStatus.WITHDRAWN,
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """`stored` is the record's row, `outcome` the audit entry that says how it ended; None where there is none."""

    request: ApprovalRequest
    run: Run
    stored: StateRecord | None
    outcome: AuditEntry | None

    @property
    def subject(self) -> str:
        request = self.request
        return f"request {name_of_key(request.key)} of {request.agent_id} (step {request.step}, run {self.run.uuid})"

    @property
    def facts(self) -> dict[str, Any]:
        return {"subject": self.subject, "run": str(self.run.uuid)}

    def told(self) -> str:
        """`approved by Asha` as the audit has it."""
        return f"{self.outcome.outcome} by {self.outcome.actor}" if self.outcome is not None else "ended"


def name_of_key(key: object) -> str:
    return shown(records.store_key(key))


def case_of(request: ApprovalRequest) -> Case:
    """Everything that belongs to the request."""
    proof = AuditEntry.objects.filter(workspace=request.workspace, key=str(request.key), act__in=ENDINGS)
    return Case(
        request=request,
        run=request.run,
        stored=entry_of(request),
        outcome=proof.exclude(outcome="").order_by("id").last(),
    )


def entry_of(request: ApprovalRequest) -> StateRecord | None:
    """The record's row, expired or not."""
    scope = {"workspace": request.workspace, "workflow": request.agent_id}
    return StateRecord.objects.filter(**scope, key=records.store_key(request.key)).first()


def records_among(requests: Iterable[tuple[str, str, object]]) -> set[tuple[str, str, str]]:
    """Which of these (workspace, agent, key) have a record: workspace, agent and the record's key."""
    wanted = [(workspace, agent, records.store_key(key)) for workspace, agent, key in requests]
    found: set[tuple[str, str, str]] = set()
    for workspace in {workspace for workspace, _, _ in wanted}:
        keys = [key for where, _, key in wanted if where == workspace]
        rows = StateRecord.objects.filter(workspace=workspace, key__in=keys)
        found.update(rows.values_list("workspace", "workflow", "key"))
    return found


def lock_request(pk: int) -> None:
    """The record, the request, the run: in the order in which everybody takes them."""
    request = ApprovalRequest.objects.filter(pk=pk).first()
    if request is None:
        return
    stored = entry_of(request)
    if stored is not None:
        StateRecord.objects.select_for_update().filter(pk=stored.pk).values_list("pk").first()
    ApprovalRequest.objects.select_for_update(of=("self",)).filter(pk=pk).values_list("pk").first()
    Run.objects.select_for_update(of=("self",)).filter(pk=request.run_id).values_list("pk").first()


def lock_waiting(pk: int) -> None:
    """The same for all that a run waits for."""
    for request in ApprovalRequest.objects.filter(run=pk).order_by("pk").values_list("pk", flat=True):
        lock_request(request)
    Run.objects.select_for_update(of=("self",)).filter(pk=pk).values_list("pk").first()


# Acts that mends are made of -----------------------------------------------------------------------------------


def take(stored: StateRecord | None) -> None:
    """The record as it was read, by the same counted delete as a decision's."""
    if stored is not None:
        need(StateRecord.objects.filter(pk=stored.pk, version=stored.version).delete()[0])


def close(case: Case, by: By, why: str) -> None:
    """Close an open request as the audit says that it ended, or as cancelled; written down where nothing was."""
    said = case.outcome.outcome if case.outcome is not None else ""
    status = _CLOSED_AS.get(said, RequestStatus.CANCELLED)
    request = case.request
    same = ApprovalRequest.objects.filter(pk=request.pk, status=RequestStatus.OPEN, revision=request.revision)
    need(same.update(status=status, closed_at=now(), revision=request.revision + 1))
    tell(request, "closed")
    note(case, by, why, outcome="" if case.outcome is not None else "cancelled")


def note(case: Case, by: By, why: str, outcome: str = "") -> None:
    """The audit entry of a mend on a request."""
    audit.of_request("repair", case.request, actor=by.actor, reason=by.because(why), outcome=outcome)


def outputs_in(stored: StateRecord | None) -> Outputs:
    """What the steps made, as the record holds it."""
    return records.outputs_ahead(codec.load_record(stored.value)) if stored is not None else {}


def made_nothing(run: Run) -> bool:
    """Whether no step of it is lost with its record: it waits at the first one."""
    told = run.events.values_list("type", flat=True)
    return len(told) == run.last_event and "step_completed" not in told


def ask_again(run: Run, outputs: Outputs, by: By, why: str) -> None:
    """Back into the queue where it waits: a worker enters the gate again, as after a takeover, and asks anew."""
    waits = Run.objects.filter(pk=run.pk, status=Status.AWAITING, lease_token=run.lease_token)
    moved = waits.update(
        status=Status.QUEUED,
        outputs=codec.dump_outputs(outputs),
        queued_at=DbNow(),
        not_before=None,
        lease_owner="",
        lease_until=None,
    )
    need(moved)
    run.refresh_from_db()
    enqueue(run)
    desk().note("repair", run, by.actor, by.because(why))


def end_waiting(run: Run, event: Ending, by: By, why: str, **kept: Any) -> None:
    """End a run that waits; without `outputs` those are lost, and a retry begins at the first step."""
    if not end_from_outside(run, where=Q(status=Status.AWAITING), event=event, **kept):
        raise Moved
    if "outputs" not in kept and isinstance(event, Failed | Interrupted):
        start_over = {"step_index": 0, "step": "", "phase": "before", "decision": "", "outputs": ""}
        Run.objects.filter(pk=run.pk).update(**start_over)
    desk().note("repair", run, by.actor, by.because(why))


def ending_of(case: Case, outcome: AuditEntry) -> Ending:
    """The end that the audit tells. Where a run should have gone on and is not there, an operator has to look."""
    step, held = case.run.step, policy_of(case.request)
    if outcome.outcome == "rejected" and not held.goes_on_after_no:
        return Rejected(step=step, reason=outcome.reason or REJECTED)
    if outcome.outcome == "expired" and held.on_expire_tool is None:
        match held.on_expire:
            case "fail":
                return Failed(step=step, error=EXPIRED)
            case "reject":
                return Rejected(step=step, reason=EXPIRED)
        return Expired(step=step, error=EXPIRED)
    if outcome.outcome == "cancelled":
        return Cancelled(error=f"cancelled by {outcome.actor}")
    return Interrupted(
        step=step,
        error=f"{case.told()}, and the run that should have gone on is not there. "
        "Look what was done, then retry or give up",
    )
