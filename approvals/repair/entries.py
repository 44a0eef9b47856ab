"""Entries of the store without their request, and approvals that could not be withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from approvals.models import ApprovalRequest, RequestStatus
from approvals.queue import is_key
from approvals.records import KIND
from statestore.clock import DbNow
from statestore.keys import RECALL, shown
from statestore.models import StateRecord
from workflows.models import Run, Status
from workflows.repair.entries import delete_entry, lock_entry, of_kind, read
from workflows.repair.findings import Check, Finding, Scope
from workflows.times import rfc3339


def _known(names: Iterable[str], kind: str, **conditions: Any) -> set[str]:
    """Those of these keys that a request has."""
    keys = [UUID(name.removeprefix(kind)) for name in names if is_key(name.removeprefix(kind))]
    found = ApprovalRequest.objects.filter(key__in=keys, **conditions).values_list("key", flat=True)
    return {f"{kind}{key}" for key in found}


# Records -------------------------------------------------------------------------------------------------------


def _without_request(scope: Scope) -> Iterator[int]:
    for page in of_kind(KIND):
        known = _known(page.values(), KIND)
        yield from (pk for pk, key in page.items() if key not in known)


def _judge_record(pk: int) -> Finding | None:
    entry = StateRecord.objects.filter(pk=pk).first()
    if entry is None or _known([entry.key], KIND):
        return None
    root = read(entry.value).get("run")
    run = Run.objects.filter(uuid=root).first() if isinstance(root, str) and is_key(root) else None
    if run is not None and run.status == Status.AWAITING:
        return None  # It is told of the run that waits.
    became = f"its run {run.uuid} is {run.status}" if run is not None else "its run is not there"
    return Finding(
        code="record_orphan",
        subject=f"record {shown(entry.key)} of {entry.workflow}",
        run=str(run.uuid) if run is not None else "",
        since=entry.created_at,
        what=f"it has no request, and {became}",
        means="nobody can find it, decide it or end it; it takes space for ever, since the purge leaves records alone",
        fix="deletes it: nothing waits for it",
        mend=lambda by: delete_entry(entry),
    )


# Recalls -------------------------------------------------------------------------------------------------------


def _recalls(scope: Scope) -> Iterator[int]:
    for page in of_kind(RECALL):
        decided = _known(page.values(), RECALL, status=RequestStatus.DECIDED)
        yield from (pk for pk, key in page.items() if key not in decided)


def _judge_recall(pk: int) -> Finding | None:
    entry = StateRecord.objects.filter(pk=pk).first()
    if entry is None or _known([entry.key], RECALL, status=RequestStatus.DECIDED):
        return None
    return Finding(
        code="recall_orphan",
        subject=f"entry {shown(entry.key)} of {entry.workflow}",
        since=entry.created_at,
        what="it is kept for an approval that can be withdrawn, and there is no such approval",
        means="nothing for people; it goes by itself when its time is over",
        fix="deletes it",
        mend=lambda by: delete_entry(entry),
    )


def _withdrawable(pk: int | None = None) -> Any:
    found = ApprovalRequest.objects.filter(status=RequestStatus.DECIDED, recall_until__gt=DbNow())
    return found if pk is None else found.filter(pk=pk)


def _recall_key(request: ApprovalRequest) -> dict[str, str]:
    return {"workspace": request.workspace, "workflow": request.agent_id, "key": f"{RECALL}{request.key}"}


def _waits_for_its_recall(request: ApprovalRequest) -> bool:
    waits = Run.objects.filter(resumed_from=request.run_id, status=Status.QUEUED, lease_token=0, not_before__gt=DbNow())
    return waits.exists()


def _not_kept(scope: Scope) -> Iterator[int]:
    """Those decided lately: a recall is short, and the newest successors wait for it."""
    waiting = Run.objects.filter(
        status=Status.QUEUED, lease_token=0, not_before__gt=DbNow(), resumed_from__isnull=False
    )
    for start in waiting.order_by().values_list("resumed_from", flat=True):
        for request in _withdrawable().filter(run=start):
            if not StateRecord.objects.filter(**_recall_key(request)).exists():
                yield request.pk


def _judge_not_kept(pk: int) -> Finding | None:
    request = _withdrawable(pk).select_related("run").first()
    if request is None or not _waits_for_its_recall(request):
        return None
    if StateRecord.objects.filter(**_recall_key(request)).exists():
        return None
    until = rfc3339(request.recall_until)
    return Finding(
        code="recall_lost",
        subject=f"request {shown(f'{KIND}{request.key}')} of {request.agent_id} (step {request.step})",
        run=str(request.run.uuid),
        since=request.closed_at,
        what="it is approved and could be withdrawn, and what is kept for that is gone",
        means=f"until {until} the page offers to withdraw it, and that fails; the approval itself takes effect then",
        move=f"whoever wants it stopped cancels the run that waits (`runs cancel ID`) before {until}; then it is over",
    )


CHECKS = (
    Check(name="records", codes=("record_orphan",), suspects=_without_request, judge=_judge_record, lock=lock_entry),
    Check(name="recalls", codes=("recall_orphan",), suspects=_recalls, judge=_judge_recall, lock=lock_entry),
    Check(name="withdrawable approvals", codes=("recall_lost",), suspects=_not_kept, judge=_judge_not_kept),
)
