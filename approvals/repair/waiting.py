"""Runs that wait: each has one open request, and that has a record which can be decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from approvals import records
from approvals.models import ApprovalRequest, RequestStatus
from approvals.repair.cases import (
    Case,
    ask_again,
    case_of,
    close,
    end_waiting,
    ending_of,
    lock_waiting,
    made_nothing,
    note,
    outputs_in,
    records_among,
    take,
)
from statestore.models import StateRecord
from workflows.engine import jsontext
from workflows.engine.events import Interrupted
from workflows.models import Run, Status
from workflows.repair.findings import By, Check, Finding, Scope, need
from workflows.repair.words import name_of, step_of

_LOST = (
    "what it waited for is gone, and with it what its steps had made; nobody decided it. Check what they did, then "
    "retry (it begins at the first step and makes every call again) or give up"
)
_NOBODY = "nobody can decide it, and it would wait for ever"
_AGAIN = "a worker enters the step again, calls nothing that was called, and asks under a new key"
_INTERRUPTS = "interrupts it, so that an operator retries it from its first step or gives it up"


def _suspects(scope: Scope) -> Iterator[int]:
    waiting = Run.objects.filter(status=Status.AWAITING)
    for page in scope.pages(waiting, Q(status=Status.AWAITING), "waiting runs"):
        opened = list(
            ApprovalRequest.objects.filter(run__in=page, status=RequestStatus.OPEN, mode="gate")
            .order_by()
            .values_list("run", "workspace", "agent_id", "key")
        )
        there = records_among((workspace, agent, key) for _, workspace, agent, key in opened)
        whole = Counter(
            run for run, workspace, agent, key in opened if (workspace, agent, records.store_key(key)) in there
        )
        asked = Counter(run for run, *_ in opened)
        twice = set(Run.objects.filter(pk__in=page).exclude(outputs="").values_list("pk", flat=True))
        yield from (pk for pk in page if pk in twice or (whole[pk], asked[pk]) != (1, 1))


def _judge(pk: int) -> Finding | None:
    run = Run.objects.filter(pk=pk, status=Status.AWAITING).first()
    if run is None or Run.objects.filter(resumed_from=run).exclude(status=Status.CANCELLED).exists():
        return None  # It was left behind, which is told of its chain.
    asked = ApprovalRequest.objects.filter(run=run, mode="gate").select_related("run").order_by("pk")
    opened = [case_of(one) for one in asked.filter(status=RequestStatus.OPEN)]
    if len(opened) > 1:
        return _twice(run, opened)
    if opened:
        return _no_record(opened[0]) if opened[0].stored is None else _stored_twice(run, opened[0])
    last = asked.last()
    return _closed(case_of(last)) if last is not None else _not_asked(run)


def _facts(run: Run) -> dict[str, Any]:
    told = run.events.filter(type="awaiting_approval").order_by("-number").first()
    since = told.at if told is not None else run.started_at
    return {"subject": f"{name_of(run)}{step_of(run)}", "run": str(run.uuid), "since": since}


def _twice(run: Run, opened: list[Case]) -> Finding:
    *older, _ = opened

    def keep_the_newest(by: By) -> None:
        for case in older:
            take(case.stored)
            close(case, by, "the run waits for a newer request")

    return Finding(
        code="waiting_twice",
        what=f"it waits for {len(opened)} open requests at once",
        means="people are asked twice; whoever decides second is refused",
        fix="closes all but the newest, as cancelled",
        mend=keep_the_newest,
        **_facts(run),
    )


def _stored_twice(run: Run, case: Case) -> Finding | None:
    if not run.outputs:
        return None
    return Finding(
        code="outputs_twice",
        what="what its steps made is in its row as well as in the record of its request",
        means="nothing for people: the record's is what a decision goes on with; the row's takes space and may differ",
        fix="empties the row's; the record keeps its own",
        mend=lambda by: need(
            Run.objects.filter(pk=run.pk, status=Status.AWAITING, outputs=run.outputs).update(outputs="")
        ),
        **_facts(run),
    )


def _no_record(case: Case) -> Finding:
    if case.outcome is not None:
        return _decided(case)
    again = made_nothing(case.run)

    def mend(by: By) -> None:
        close(case, by, "its record was gone")
        _go_on_without(case.run, again, by, "the record of its request was gone")

    return Finding(
        code="record_missing",
        what="its request is open and the record that a decision takes is gone",
        means=f"it stands in the queue and {_NOBODY}",
        fix=f"closes the request as cancelled; {_AGAIN if again else _INTERRUPTS}",
        mend=mend,
        **_facts(case.run),
    )


def _go_on_without(run: Run, again: bool, by: By, why: str) -> None:
    if again:
        ask_again(run, {}, by, why)
    else:
        end_waiting(run, Interrupted(step=run.step or None, error=_LOST), by, why)


def _closed(case: Case) -> Finding:
    if case.outcome is not None:
        return _decided(case)
    if case.stored is None:
        return _nothing(case.run)

    def reopen(by: By) -> None:
        closed = ApprovalRequest.objects.filter(pk=case.request.pk, status=case.request.status)
        need(closed.update(status=RequestStatus.OPEN, closed_at=None, revision=case.request.revision + 1))
        note(case, by, "its record was there and nobody had decided: it is open again")

    return Finding(
        code="request_closed_early",
        what=f"its request is {case.request.status}, but its record is there and the audit knows of no decision",
        means=f"it is not in the queue: {_NOBODY}",
        fix="opens the request again: the record is what a decision takes, and nobody took it",
        mend=reopen,
        **_facts(case.run),
    )


def _decided(case: Case) -> Finding:
    """The audit says how it ended, and the run still waits. What the audit says is never decided again."""
    run, outcome = case.run, case.outcome
    assert outcome is not None
    event = ending_of(case, outcome)
    kept = {"outputs": outputs_in(case.stored)} if case.stored is not None else {}

    def mend(by: By) -> None:
        take(case.stored)
        if case.request.status == RequestStatus.OPEN:
            close(case, by, "the audit says how it ended")
        end_waiting(run, event, by, f"its request had been {case.told()}", **kept)

    ends = type(event).__name__.lower()
    return Finding(
        code="decided_not_done",
        what=f"its request was {case.told()}, says the audit, and it waits all the same",
        means="the decision has no effect, and the run would wait for ever",
        fix=f"ends it as {ends}, as the audit has it"
        if not isinstance(event, Interrupted)
        else "interrupts it: an operator retries it, and somebody is asked again, or gives it up",
        mend=mend,
        **_facts(run),
    )


def _not_asked(run: Run) -> Finding:
    """No request at all. The event of the pause names the key of its record."""
    told = run.events.filter(type="awaiting_approval").order_by("-number").first()
    key = jsontext.loads(told.payload).get("key") if told is not None else None
    scope = {"workspace": run.workspace, "workflow": run.agent_id}
    stored = StateRecord.objects.filter(**scope, key=records.store_key(key)).first() if key else None
    if stored is None:
        return _nothing(run)

    def mend(by: By) -> None:
        take(stored)
        ask_again(run, outputs_in(stored), by, "its request was gone")

    return Finding(
        code="request_missing",
        what="its record is there, and the request beside it is gone",
        means=f"it is not in the queue: {_NOBODY}",
        fix=f"takes what its steps made out of the record; {_AGAIN}",
        mend=mend,
        **_facts(run),
    )


def _nothing(run: Run) -> Finding:
    again = made_nothing(run)
    return Finding(
        code="waits_for_nothing",
        what="it has neither an open request nor a record, and the audit knows of no decision",
        means=_NOBODY,
        fix=_AGAIN if again else _INTERRUPTS,
        mend=lambda by: _go_on_without(run, again, by, "what it waited for was gone"),
        **_facts(run),
    )


CHECKS = (
    Check(
        name="waiting runs",
        codes=(
            "waits_for_nothing",
            "request_missing",
            "record_missing",
            "request_closed_early",
            "decided_not_done",
            "waiting_twice",
            "outputs_twice",
        ),
        suspects=_suspects,
        judge=_judge,
        lock=lock_waiting,
    ),
)
