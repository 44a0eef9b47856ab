"""Running runs whose worker is gone, and attempts that nobody closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from statestore.clock import DbNow
from statestore.conf import value as setting
from workflows.desk import desk
from workflows.endings import end_from_outside
from workflows.engine.events import Interrupted
from workflows.models import Attempt, Run, Status
from workflows.recovery import take_from_lost_worker
from workflows.repair.findings import LATE_SECONDS, By, Check, Finding, Moved, Scope, need
from workflows.repair.words import ACTIVE, how_long, name_of, step_of, workers
from workflows.times import rfc3339

#: Ended by themselves, so that every call of theirs came back; the others may leave one of unknown fate.
_CLOSED_BY_THEIR_END = (Status.COMPLETED, Status.REJECTED, Status.EXPIRED, Status.FAILED, Status.AWAITING)


def lock_run(pk: int) -> None:
    """Nobody changes the run until the transaction ends."""
    Run.objects.select_for_update(of=("self",)).filter(pk=pk).values_list("pk").first()


# Leases --------------------------------------------------------------------------------------------------------


def _far() -> DbNow:
    """Beyond every lease that a right clock writes."""
    return DbNow(10 * setting("KAMPONG_LEASE_SECONDS"))


def _unheld() -> Any:
    lapsed = Q(lease_until__isnull=True) | Q(lease_until__lt=DbNow(-LATE_SECONDS)) | Q(lease_until__gt=_far())
    return Run.objects.filter(lapsed, status=Status.RUNNING)


def _suspects(scope: Scope) -> Iterator[int]:
    yield from sorted(_unheld().order_by().values_list("pk", flat=True))


def _judge(pk: int) -> Finding | None:
    run = _unheld().filter(pk=pk).first()
    if run is None:
        return None
    called = run.attempts.filter(ended_at__isnull=True).order_by("-n").first()
    held = f"it is running{step_of(run)}"
    if called is not None:
        after = f"a call of {called.name} was under way: it is interrupted, because nobody knows whether it took effect"
    else:
        after = "no call was under way: it goes back into the queue, and after its third lost worker it is interrupted"
    facts: dict[str, Any] = {"subject": name_of(run), "run": str(run.uuid)}
    if run.lease_until is None:
        return Finding(
            code="running_no_lease",
            what=f"{held} and nobody has a lease on it",
            since=run.started_at,
            means="recovery looks for leases that ran out, so it would stand like this for ever",
            fix=f"takes it from the worker that is not there; {after}",
            mend=lambda by: _take(run, by, "it was running without a lease"),
            **facts,
        )
    if _unheld().filter(pk=pk, lease_until__gt=_far()).exists():
        return Finding(
            code="lease_too_long",
            what=f"its lease lasts until {rfc3339(run.lease_until)}: a clock went wrong",
            since=run.started_at,
            means=f"if its worker ({run.lease_owner or 'unknown'}) is gone, nobody takes it over before that",
            move="look whether that process lives; if not, `runs cancel ID` ends the run",
            **facts,
        )
    return Finding(
        code="lease_lapsed",
        what=f"{held}; its worker ({run.lease_owner or 'unknown'}) was last heard of {how_long(run.lease_until)} ago"
        " and more",
        since=run.lease_until,
        means=f"nobody works on it; `recover`, which workers do every few seconds, takes it up; {workers()}",
        fix=f"what `recover` does: {after}",
        mend=lambda by: _take(run, by, "its worker was lost"),
        **facts,
    )


def _take(run: Run, by: By, why: str) -> None:
    if run.lease_until is None:
        bare = Run.objects.filter(pk=run.pk, status=Status.RUNNING, lease_until__isnull=True)
        need(bare.filter(lease_token=run.lease_token).update(lease_until=DbNow(-1)))
    if not take_from_lost_worker(run):
        raise Moved
    desk().note("repair", run, by.actor, by.because(why))


# Attempts ------------------------------------------------------------------------------------------------------


def _open(ids: list[int]) -> Any:
    attempts = Attempt.objects.filter(run__in=ids, ended_at__isnull=True)
    return attempts.filter(run__status__in=(*_CLOSED_BY_THEIR_END, Status.QUEUED))


def _open_attempts(scope: Scope) -> Iterator[int]:
    for page in scope.pages(Run.objects, Q(status__in=ACTIVE), "calls of runs"):
        yield from sorted(set(_open(page).order_by().values_list("run", flat=True)))


def _judge_attempts(pk: int) -> Finding | None:
    attempt = _open([pk]).select_related("run").order_by("-n").first()
    if attempt is None:
        return None
    run: Run = attempt.run
    facts: dict[str, Any] = {"subject": name_of(run), "run": str(run.uuid), "since": attempt.started_at}
    call = f"a call of {attempt.name} (step {attempt.step}, attempt {attempt.n})"
    if run.status == Status.QUEUED:
        return Finding(
            code="attempt_open_queued",
            what=f"it is queued although {call} was begun and never came to an end",
            means="the worker that takes it may make the call a second time, and nobody knows whether it took effect",
            fix="interrupts the run, so that a person finds out first (`runs retry` or `runs give_up`)",
            mend=lambda by: _interrupt(run, attempt, by),
            **facts,
        )
    if run.status == Status.FAILED and run.events.filter(type="interrupted").exists():
        return None  # An operator gave it up: nobody knows to this day.
    return Finding(
        code="attempt_left_open",
        what=f"it is {run.status}, and {call} was begun and never came to an end",
        means="whether that call took effect stands nowhere; look there",
        fix="closes the attempt as one of unknown fate; calls nothing",
        mend=lambda by: _close(run, by),
        **facts,
    )


def _interrupt(run: Run, attempt: Attempt, by: By) -> None:
    error = (
        f"interrupted at step {attempt.step}: a call of {attempt.name} was begun, and nobody knows whether it took "
        "effect; check there, then retry or give up"
    )
    event = Interrupted(step=attempt.step, error=error)
    if not end_from_outside(run, where=Q(status=Status.QUEUED, lease_token=run.lease_token), event=event):
        raise Moved
    desk().note("repair", run, by.actor, by.because("it was queued with a call of unknown fate"))


def _close(run: Run, by: By) -> None:
    outcome = "unknown: it was found open after the run had gone on"
    closed = Attempt.objects.filter(run=run, ended_at__isnull=True).update(ended_at=DbNow(), outcome=outcome)
    if not closed:
        raise Moved
    desk().note("repair", run, by.actor, by.because("a call was left open, its fate is unknown"))


CHECKS = (
    Check(
        name="leases",
        codes=("running_no_lease", "lease_lapsed", "lease_too_long"),
        suspects=_suspects,
        judge=_judge,
        lock=lock_run,
    ),
    Check(
        name="calls",
        codes=("attempt_open_queued", "attempt_left_open"),
        suspects=_open_attempts,
        judge=_judge_attempts,
        lock=lock_run,
    ),
)
