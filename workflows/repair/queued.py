"""Queued runs and their messages, and workers to take them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db.models import Q
from django.utils import timezone

from statestore.clock import DbNow
from workflows import beats
from workflows.models import Run, Status
from workflows.repair.findings import LATE_SECONDS, By, Check, Finding, Scope, need
from workflows.repair.words import how_long, late, name_of, workers
from workflows.tasks import advance_run, enqueue
from workflows.waits import DUE

#: The rows of this app hold our messages where the backend is the database.
_QUEUE = "django_tasks_db"
#: A message may wait behind many others, and a doubled one is no fault. After an hour it is left over.
_LEFT_OVER = timedelta(hours=1)
_PAGE = 500
#: Between a worker's two statements; the run is looked at again after it.
PAUSE_SECONDS = 1.0


def _messages() -> Any:
    """The rows of our messages; None where another queue carries them, which cannot be looked into."""
    if not apps.is_installed(_QUEUE):
        return None
    # Imported here because the model exists only where the app is installed.
    from django_tasks_db import DatabaseBackend
    from django_tasks_db.models import DBTaskResult

    if not isinstance(advance_run.get_backend(), DatabaseBackend):
        return None

    return DBTaskResult.objects.filter(task_path=advance_run.module_path, status="READY").order_by("pk")


def _run_id(payload: Any) -> str:
    try:
        return str(payload["args"][1])
    except (KeyError, IndexError, TypeError):
        return ""


def _waiting_too_long() -> Any:
    return Run.objects.filter(DUE, status=Status.QUEUED, queued_at__lt=DbNow(-LATE_SECONDS))


# Without a message ---------------------------------------------------------------------------------------------


def _unsent(scope: Scope) -> Iterator[int]:
    """Queued and due for long. A worker takes a message and then its run: one that did so just now has a moment."""
    rows = _messages()
    waiting = dict(_waiting_too_long().values_list("uuid", "pk"))
    if rows is None or not waiting:
        return
    waiting = {str(uuid): pk for uuid, pk in waiting.items()}
    after = None
    while page := list((rows if after is None else rows.filter(pk__gt=after)).values_list("pk", "args_kwargs")[:_PAGE]):
        for _, payload in page:
            waiting.pop(_run_id(payload), None)
        after = page[-1][0]
    if waiting:
        time.sleep(PAUSE_SECONDS)
    yield from sorted(waiting.values())


def _judge_unsent(pk: int) -> Finding | None:
    run = _waiting_too_long().filter(pk=pk).first()
    if run is None:
        return None

    def send(by: By) -> None:
        need(_waiting_too_long().filter(pk=pk, queued_at=run.queued_at).update(queued_at=DbNow()))
        enqueue(run)

    return Finding(
        code="queued_no_message",
        subject=name_of(run),
        run=str(run.uuid),
        since=run.queued_at,
        what=f"it has been queued for {how_long(run.queued_at)} and no message sends a worker to it",
        means=f"nobody works on it; `recover`, which workers do every few seconds, sends it again; {workers()}",
        fix="sends the message again",
        mend=send,
    )


# Without a worker ----------------------------------------------------------------------------------------------


def _once(scope: Scope) -> tuple[str]:
    return ("",)


def _judge_workers(suspect: str) -> Finding | None:
    if beats.alive():
        return None
    oldest = _waiting_too_long().order_by("queued_at").first()
    if oldest is None:
        return None
    return Finding(
        code="no_worker",
        subject=f"{_waiting_too_long().count()} queued runs",
        since=oldest.queued_at,
        what="runs are queued and due, and no worker process is alive",
        means="nothing goes on: no run, no approved action, no expiry, no notice",
        move="start `serve` or `worker` on this database, and look into the log of the one that ended",
    )


# Messages that lead nowhere ------------------------------------------------------------------------------------


def _left_over(scope: Scope) -> Iterator[Any]:
    rows = _messages()
    if rows is None:
        return
    old = rows.filter(Q(run_after__lte=timezone.now() - _LEFT_OVER), enqueued_at__lte=timezone.now() - _LEFT_OVER)
    after = None
    while page := list((old if after is None else old.filter(pk__gt=after)).values_list("pk", "args_kwargs")[:_PAGE]):
        ids = {_run_id(payload) for _, payload in page}
        queued = _queued_among(ids)
        yield from (pk for pk, payload in page if _run_id(payload) not in queued)
        after = page[-1][0]


def _queued_among(ids: set[str]) -> set[str]:
    named = [one for one in ids if len(one) == len("00000000-0000-0000-0000-000000000000")]
    found = Run.objects.filter(uuid__in=named, status=Status.QUEUED).values_list("uuid", flat=True)
    return {str(uuid) for uuid in found}


def _judge_left_over(pk: Any) -> Finding | None:
    rows = _messages()
    row = rows.filter(pk=pk).first() if rows is not None else None
    if row is None or not late(row.enqueued_at, _LEFT_OVER.total_seconds()):
        return None
    name = _run_id(row.args_kwargs)
    if _queued_among({name}):
        return None
    return Finding(
        code="message_for_nobody",
        subject=f"message {pk}",
        run=name,
        since=row.enqueued_at,
        what="it would send a worker to a run that is not queued, or not there",
        means="nothing: a worker that takes it finds nothing to do; it only lengthens the queue",
        fix="deletes the message",
        mend=lambda by: need(rows.filter(pk=pk).delete()[0]),
    )


CHECKS = (
    Check(name="queued runs", codes=("queued_no_message",), suspects=_unsent, judge=_judge_unsent),
    Check(name="workers", codes=("no_worker",), suspects=_once, judge=_judge_workers),
    Check(name="messages", codes=("message_for_nobody",), suspects=_left_over, judge=_judge_left_over),
)
