"""The message that sends a worker to a run. It carries workspace and run id and nothing else: the Run row is the truth.

A lost, doubled or late message changes nothing (design 4).
"""

from __future__ import annotations

import functools
from datetime import datetime
from typing import Any

from django.db import router, transaction
from django.utils import timezone
from django_tasks_db import DatabaseBackend

from statestore.clock import now
from workflows.advance import advance
from workflows.models import Run, Status
from workflows.wakeup import bell

try:
    from django.tasks import task  # type: ignore[import-not-found, unused-ignore]  # Django 6 has it built in
except ImportError:
    from django_tasks import task  # type: ignore[no-redef, unused-ignore]  # before it, the same API as a package


@task()
def advance_run(workspace: str, run_id: str) -> None:
    """Drive a run to its next pause or end. One that is queued still, or again, gets another message."""
    advance(workspace, run_id)
    queued = Run.objects.filter(workspace=workspace, uuid=run_id, status=Status.QUEUED).first()
    if queued is not None:
        enqueue(queued)


def enqueue(run: Run) -> None:
    """Send a worker to this run: inside the caller's transaction, or after its commit where the queue is elsewhere."""
    message = advance_run
    due = _due(run)
    if due is not None:
        if not message.get_backend().supports_defer:
            return  # Recovery sends when the time has come.
        message = message.using(run_after=due)
    send = functools.partial(message.enqueue, run.workspace, str(run.uuid))
    if _in_our_database(message):
        send()
        transaction.on_commit(bell.ring)
    else:
        # Robust: the run is committed. A broker that fails is logged, and recovery sends again.
        transaction.on_commit(send, robust=True)


def _due(run: Run) -> datetime | None:
    """When the queue's own clock shows `not_before`; None when that is past or unset."""
    at = run.not_before
    if at is not None and not isinstance(at, datetime):
        # Written as an expression: only the database knows what came of it.
        at = Run.objects.values_list("not_before", flat=True).get(pk=run.pk)
    if at is None:
        return None
    wait = at - now()
    return timezone.now() + wait if wait.total_seconds() > 0 else None


def _in_our_database(message: Any) -> bool:
    if not isinstance(message.get_backend(), DatabaseBackend):
        return False
    # Imported here because the model exists only where the app is installed, as with this backend it is.
    from django_tasks_db.models import DBTaskResult

    return router.db_for_write(DBTaskResult) == router.db_for_write(Run)
