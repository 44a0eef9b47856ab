"""The queue's side of a message: one worker takes it, and what other workers of the queue left is tidied away.

A message is taken by deleting its row, count 1. That loses nothing: the Run row is the truth, and recovery sends
again what stays queued. It also keeps the table short, so that an idle look is cheap and takes no write lock.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from workflows.tasks import advance_run

logger = logging.getLogger("kampong.worker")

_LOOK = 8
_PRUNE_BATCH = 500
_KEPT_DAYS = 1


def take() -> tuple[str, str] | None:
    """Workspace and run id of one message that is now ours and nobody else's; None when there is none."""
    ready = DBTaskResult.objects.ready().filter(backend_name=advance_run.backend, task_path=advance_run.module_path)
    for key, payload in ready.values_list("pk", "args_kwargs")[:_LOOK]:
        if DBTaskResult.objects.filter(pk=key, status="READY").delete()[0] != 1:
            continue
        message = _read(payload)
        if message is not None:
            return message
        logger.error("message %s names no run: dropped", key)
    return None


def _read(payload: Any) -> tuple[str, str] | None:
    try:
        workspace, run_id = payload["args"]
    except (KeyError, TypeError, ValueError):
        return None
    return (workspace, run_id) if isinstance(workspace, str) and isinstance(run_id, str) else None


def prune() -> int:
    """Delete rows that another worker of the queue left finished or running for ever, a day old, in batches."""
    before = timezone.now() - timedelta(days=_KEPT_DAYS)
    old = DBTaskResult.objects.filter(enqueued_at__lt=before, task_path=advance_run.module_path)
    old = old.exclude(status="READY").order_by()
    gone = 0
    while keys := list(old.values_list("pk", flat=True)[:_PRUNE_BATCH]):
        gone += DBTaskResult.objects.filter(pk__in=keys).delete()[0]
    return gone
