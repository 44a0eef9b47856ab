"""Requests, open or over, beside their records, their proof and what became of their runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q, Value
from django.db.models.functions import StrIndex, Substr

from approvals import records
from approvals.errors import Inconsistent
from approvals.expiry import expire
from approvals.models import ApprovalRequest, AuditEntry, RequestStatus
from approvals.repair.cases import ENDINGS, Case, case_of, close, lock_request, note, outputs_in, take
from statestore.clock import db_now
from statestore.models import StateRecord
from workflows import codec
from workflows.engine import jsontext
from workflows.models import Run, Status
from workflows.repair.findings import BEHIND_SECONDS, By, Check, Finding, Moved, Scope, need
from workflows.repair.words import how_long, late, workers

#: Digest and hash as a record's text has them, ahead of all that data could imitate.
_DIGEST, _SPEC_HASH = '"digest":"', '"spec_hash":"'
_COLUMNS = ("pk", "workspace", "agent_id", "key", "status", "mode", "digest", "spec_hash", "expires_at", "run__status")


def _suspects(scope: Scope) -> Iterator[int]:
    is_open = Q(status=RequestStatus.OPEN)
    for page in scope.pages(ApprovalRequest.objects, is_open, "requests"):
        rows = [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(page)]
        there = _records(rows)
        behind = db_now() - timedelta(seconds=BEHIND_SECONDS)
        proved = _proved([row for row in rows if row["status"] != RequestStatus.OPEN])
        for row in rows:
            record = there.get((row["workspace"], row["agent_id"], records.store_key(row["key"])))
            if _is_odd(row, record, proved, behind):
                yield row["pk"]


def _rows(page: list[int]) -> Any:
    return ApprovalRequest.objects.filter(pk__in=page).order_by("pk").values_list(*_COLUMNS)


def _records(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], tuple[Any, str, str]]:
    """Expiry, digest and spec hash of the records, without reading all that is in them."""
    found: dict[tuple[str, str, str], tuple[Any, str, str]] = {}
    for workspace in {row["workspace"] for row in rows}:
        keys = [records.store_key(row["key"]) for row in rows if row["workspace"] == workspace]
        entries = StateRecord.objects.filter(workspace=workspace, key__in=keys).annotate(
            shown=Substr("value", StrIndex("value", Value(_DIGEST)) + len(_DIGEST), 100),
            asked=Substr("value", StrIndex("value", Value(_SPEC_HASH)) + len(_SPEC_HASH), 100),
        )
        for workflow, key, expires_at, shown, asked in entries.values_list(
            "workflow", "key", "expires_at", "shown", "asked"
        ):
            found[workspace, workflow, key] = expires_at, shown.partition('"')[0], asked.partition('"')[0]
    return found


def _proved(rows: list[dict[str, Any]]) -> set[str]:
    """The keys of those that the audit knows the end of."""
    entries = AuditEntry.objects.filter(key__in=[str(row["key"]) for row in rows], act__in=ENDINGS)
    return set(entries.order_by().values_list("key", flat=True))


def _is_odd(row: dict[str, Any], record: tuple[Any, str, str] | None, proved: set[str], behind: datetime) -> bool:
    if row["status"] != RequestStatus.OPEN:
        return record is not None or str(row["key"]) not in proved
    if row["mode"] == "gate" and row["run__status"] != Status.AWAITING:
        return True
    if record is None:
        return bool(row["mode"] != "gate")  # Of a gate it is told of the run that waits.
    return bool(record != (row["expires_at"], row["digest"], row["spec_hash"]) or row["expires_at"] < behind)


def _judge(pk: int) -> Finding | None:
    request = ApprovalRequest.objects.select_related("run").filter(pk=pk).first()
    if request is None:
        return None
    case = case_of(request)
    if request.status != RequestStatus.OPEN:
        return _over(case)
    if request.mode == "gate" and case.run.status != Status.AWAITING:
        return _left_open(case)
    if case.stored is None:
        return _no_record(case) if request.mode != "gate" else None
    return _differs(case, codec.load_record(case.stored.value)) or _overdue(case)


# Open ----------------------------------------------------------------------------------------------------------


def _left_open(case: Case) -> Finding:
    run, stored = case.run, case.stored
    facts = case.facts | {"code": "request_left_open", "since": run.ended_at or case.request.created_at}
    facts["what"] = f"it is open, and its run is {run.status} and does not wait for it"
    facts["means"] = "it stands in the queue, and whoever decides it is refused"
    if case.outcome is None and stored is not None and _left_its_wait(case):
        return Finding(
            fix="lets the run wait for it again: nobody decided, and the run did nothing since",
            mend=lambda by: _wait_again(case, by),
            **facts,
        )

    lost = outputs_in(stored) if stored is not None and not run.outputs else {}
    if lost and run.status in (Status.QUEUED, Status.RUNNING):
        return Finding(
            move="cancel the run (`runs cancel ID`) and repair again: it goes on without what its steps made, which "
            "the record alone holds",
            **facts,
        )

    def mend(by: By) -> None:
        take(stored)
        if lost and run.status != Status.RESUMED:
            # As when somebody cancels it: a retry finds what the steps had made.
            need(Run.objects.filter(pk=run.pk, status=run.status, outputs="").update(outputs=codec.dump_outputs(lost)))
        close(case, by, f"its run was {run.status} and did not wait for it")

    ended = case.told() if case.outcome is not None else "cancelled: the audit knows of no decision"
    return Finding(fix=f"closes it ({ended}) and takes its record away", mend=mend, **facts)


def _left_its_wait(case: Case) -> bool:
    """Whether the run only stopped waiting: its pause is the last that it did, and no call was begun after it."""
    run = case.run
    if run.status not in (Status.QUEUED, Status.RUNNING) or run.outputs:
        return False
    last = run.events.filter(number=run.last_event, type="awaiting_approval").first()
    if last is None or jsontext.loads(last.payload).get("key") != str(case.request.key):
        return False
    return not run.attempts.filter(Q(ended_at__isnull=True) | Q(started_at__gt=last.at)).exists()


def _wait_again(case: Case, by: By) -> None:
    run = case.run
    same = Run.objects.filter(pk=run.pk, status=run.status, lease_token=run.lease_token, last_event=run.last_event)
    # Whoever holds it meets the fence.
    need(same.update(status=Status.AWAITING, lease_owner="", lease_until=None, lease_token=F("lease_token") + 1))
    note(case, by, f"its run was {run.status} although nobody had decided: it waits again")


def _no_record(case: Case) -> Finding:
    """A recorded request that nobody waits for."""
    return Finding(
        code="recorded_no_record",
        since=case.request.created_at,
        what="it is open (recorded, no run waits for it) and the record that a decision takes is gone",
        means="it stands in the queue and nobody can decide it",
        fix=f"closes it ({case.told() if case.outcome is not None else 'cancelled'})",
        mend=lambda by: close(case, by, "its record was gone"),
        **case.facts,
    )


def _differs(case: Case, record: records.Record) -> Finding | None:
    request, stored = case.request, case.stored
    assert stored is not None
    same = ApprovalRequest.objects.filter(pk=request.pk, status=RequestStatus.OPEN, revision=request.revision)
    if not records.fits(request, record):
        now = {"digest": record["digest"], "spec_hash": record["spec_hash"], "revision": request.revision + 1}

        def as_shown(by: By) -> None:
            need(same.update(**now))
            note(case, by, "digest or spec hash were not those of its record")

        return Finding(
            code="request_differs",
            since=request.created_at,
            what="its digest or its spec hash is not that of its record",
            means="every decision on it is refused as busy; what people are shown is the record's",
            fix="takes both from the record; approvals for anything else do not count, as after an edit",
            mend=as_shown,
            **case.facts,
        )
    if stored.expires_at is not None and stored.expires_at != request.expires_at:
        return Finding(
            code="expiry_differs",
            since=request.created_at,
            what="it says another time for its end than its record",
            means="people are told a time that does not count: the record's does",
            fix="takes the time from the record",
            mend=lambda by: need(same.update(expires_at=stored.expires_at, revision=request.revision + 1)),
            **case.facts,
        )
    return None


def _overdue(case: Case) -> Finding | None:
    request = case.request
    if not late(request.expires_at, BEHIND_SECONDS):
        return None

    def end(by: By) -> None:
        try:
            done = expire(request)
        except Inconsistent as problem:
            raise Moved from problem
        if not done:
            raise Moved

    return Finding(
        code="expired_not_taken",
        since=request.expires_at,
        what=f"its time was over {how_long(request.expires_at)} ago, and its run still waits",
        means=f"nobody can decide it any more; `sweep`, which workers do every second, ends it; {workers()}",
        fix="ends it as its policy says, as `sweep` does",
        # It may read the spec's file, which is not done inside a transaction.
        apart=True,
        mend=end,
        **case.facts,
    )


# Over ----------------------------------------------------------------------------------------------------------


def _over(case: Case) -> Finding | None:
    request, stored = case.request, case.stored
    if stored is not None:
        if case.run.status == Status.AWAITING and request.mode == "gate":
            return None  # It is told of the run that waits.
        return _record_left(case)
    if AuditEntry.objects.filter(workspace=request.workspace, key=str(request.key), act__in=ENDINGS).exists():
        return None
    return Finding(
        code="decided_no_audit",
        since=request.closed_at,
        what=f"it is {request.status}, and the audit does not say who did that",
        means=f"there is no proof of it; {_by_the_run(case)}. `audit verify` tells whether sealed entries are missing",
        fix="writes down in the audit that the proof is missing, and what row and run say instead",
        mend=lambda by: note(case, by, f"no proof of its end was there; {_by_the_run(case)}", outcome="unproved"),
        **case.facts,
    )


def _by_the_run(case: Case) -> str:
    """What the run that went on holds of the decision."""
    after = Run.objects.filter(resumed_from=case.run).exclude(decision="").order_by("pk").last()
    decision = codec.load_decision(after.decision) if after is not None else None
    if decision is None or decision.key != str(case.request.key):
        return f"the row says {case.request.status}, and no run says more"
    return (
        f"the run that went on says {'approved' if decision.approved else 'rejected'} by {decision.by}, {decision.at}"
    )


def _record_left(case: Case) -> Finding:
    request, stored = case.request, case.stored

    def mend(by: By) -> None:
        take(stored)
        note(case, by, "its record was still there")

    return Finding(
        code="record_left",
        since=request.closed_at,
        what=f"it is {request.status} ({case.told()}), and the record that a decision takes is still there",
        means="nothing for people: whoever decides it is refused, since no run waits for it",
        fix="takes the record away",
        mend=mend,
        **case.facts,
    )


CHECKS = (
    Check(
        name="requests",
        codes=(
            "request_left_open",
            "recorded_no_record",
            "request_differs",
            "expiry_differs",
            "expired_not_taken",
            "record_left",
            "decided_no_audit",
        ),
        suspects=_suspects,
        judge=_judge,
        lock=lock_request,
    ),
)
