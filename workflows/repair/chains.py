"""Chains: a run that was left and the run that goes on in its place name each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from statestore.clock import DbNow
from workflows.desk import desk
from workflows.endings import end_from_outside
from workflows.engine.events import Interrupted
from workflows.models import Run, Status
from workflows.repair.findings import By, Check, Finding, Moved, Scope, need
from workflows.repair.leases import lock_run
from workflows.repair.words import ACTIVE, name_of, step_of

#: What a run that has a successor can be set right from; one that ended otherwise is for a person to look at.
_GOES_ON = (Status.QUEUED, Status.RUNNING, Status.AWAITING, Status.INTERRUPTED, Status.FAILED)
_LOST = (
    "the run that went on from here is gone, and with it what the steps had made. Check what was done, then retry (it "
    "begins at the first step and makes every call again) or give up"
)


def _suspects(scope: Scope) -> Iterator[int]:
    """The earlier run of each pair, and the later one where it stands alone."""
    for page in scope.pages(Run.objects, Q(status__in=ACTIVE), "chains"):
        rows = Run.objects.filter(pk__in=page)
        resumed = rows.filter(status=Status.RESUMED).values_list("pk", "resumed_as__resumed_from")
        found = {pk for pk, back in resumed if back != pk}
        later = rows.filter(resumed_from__isnull=False).exclude(status=Status.CANCELLED)
        columns = (
            "pk",
            "root",
            "resumed_from",
            "resumed_from__root",
            "resumed_from__status",
            "resumed_from__resumed_as",
        )
        for pk, root, before, first, status, after in later.values_list(*columns):
            if status != Status.RESUMED or after != pk or root != (first or before):
                found.add(before)
        yield from sorted(found)


def _successor(run: Run) -> Run | None:
    """The live one: there can be one only. Those that were withdrawn are cancelled."""
    return Run.objects.filter(resumed_from=run).exclude(status=Status.CANCELLED).first()


def _judge(pk: int) -> Finding | None:
    run = Run.objects.filter(pk=pk).first()
    if run is None:
        return None
    after = _successor(run) or _cancelled(run)
    facts: dict[str, Any] = {"subject": name_of(run), "run": str(run.uuid), "since": run.ended_at or run.created_at}
    if after is None:
        return _without(run, facts)
    if run.status != Status.RESUMED:
        return _left_behind(run, after, facts) if after.status != Status.CANCELLED else None
    if run.resumed_as_id != after.pk:
        return Finding(
            code="chain_unlinked",
            what=f"it goes on as run {after.uuid} and does not say so",
            means="whoever asks for it by its own id is not shown what became of it",
            fix="links it to the run that names it",
            mend=lambda by: need(
                Run.objects.filter(pk=pk, status=Status.RESUMED, resumed_as=run.resumed_as_id).update(resumed_as=after)
            ),
            **facts,
        )
    if after.root_id != run.root_id_or_own:
        return Finding(
            code="chain_root",
            what=f"run {after.uuid} goes on from it and names another run as the first of its chain",
            means="keys that the chain took count as somebody else's, and its history is told in parts",
            fix="gives it the first run of the one before it",
            mend=lambda by: need(Run.objects.filter(pk=after.pk, root=after.root_id).update(root=run.root_id_or_own)),
            **facts,
        )
    return None


def _cancelled(run: Run) -> Run | None:
    """The one that went on and was cancelled by somebody, not withdrawn."""
    return Run.objects.filter(resumed_from=run, status=Status.CANCELLED, resumed_as__isnull=True).order_by("pk").last()


def _without(run: Run, facts: dict[str, Any]) -> Finding | None:
    if run.status != Status.RESUMED:
        return None
    return Finding(
        code="resumed_no_successor",
        what=f"it was left{step_of(run)} for a run that goes on, and there is none",
        means="what was decided on it has no effect (it stands in the audit), and it is shown as going on, for ever",
        fix="interrupts it, so that it says so; an operator then retries it from its first step or gives it up",
        mend=lambda by: _interrupt(run, by),
        **facts,
    )


def _interrupt(run: Run, by: By) -> None:
    stands = Q(status=Status.RESUMED, resumed_as=run.resumed_as_id)
    event = Interrupted(step=run.step or None, error=_LOST)
    if not end_from_outside(run, where=stands, event=event):
        raise Moved
    # What its steps made went with the successor, so a retry must not enter behind them.
    start_over = {"step_index": 0, "step": "", "phase": "before", "decision": "", "outputs": "", "resumed_as": None}
    Run.objects.filter(pk=run.pk).update(**start_over)
    desk().note("repair", run, by.actor, by.because("the run that went on from it was gone"))


def _left_behind(run: Run, after: Run, facts: dict[str, Any]) -> Finding:
    facts |= {
        "code": "left_behind",
        "what": f"it is {run.status}{step_of(run)} although run {after.uuid} goes on from it",
        "means": "the chain has two ends: its steps could run twice, and what waits there could not be decided",
    }
    if run.status not in _GOES_ON:
        return Finding(move="read both runs and the audit; cancel the later one if it must not go on", **facts)
    return Finding(
        fix="sets the earlier one to resumed: the later one has its outputs and goes on",
        mend=lambda by: _leave(run, after, by),
        **facts,
    )


def _leave(run: Run, after: Run, by: By) -> None:
    stands = Run.objects.filter(pk=run.pk, status=run.status, lease_token=run.lease_token)
    need(
        stands.update(
            status=Status.RESUMED, resumed_as=after, outputs="", ended_at=DbNow(), lease_owner="", lease_until=None
        )
    )
    desk().note("repair", run, by.actor, by.because(f"it was {run.status} beside its successor"), after)


CHECKS = (
    Check(
        name="chains",
        codes=("resumed_no_successor", "left_behind", "chain_unlinked", "chain_root"),
        suspects=_suspects,
        judge=_judge,
        lock=lock_run,
    ),
)
