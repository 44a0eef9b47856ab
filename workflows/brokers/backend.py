"""The Tasks API on Celery: the one message that there is, sent after the commit."""

from __future__ import annotations

import functools
import uuid
from importlib import import_module
from typing import Any

from django.db import transaction
from django.utils import timezone

try:
    from django.tasks import TaskResult, TaskResultStatus  # type: ignore[import-not-found, unused-ignore]
    from django.tasks.backends.base import BaseTaskBackend  # type: ignore[import-not-found, unused-ignore]
    from django.tasks.exceptions import InvalidTask  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    from django_tasks.backends.base import BaseTaskBackend  # type: ignore[assignment, unused-ignore]
    from django_tasks.base import TaskResult, TaskResultStatus  # type: ignore[assignment, unused-ignore]
    from django_tasks.exceptions import InvalidTaskError as InvalidTask  # type: ignore[assignment, unused-ignore]

__all__ = ["CeleryBackend", "InvalidTask"]

TASK = "workflows.tasks.advance_run"


class CeleryBackend(BaseTaskBackend):
    """Takes `advance_run` with a workspace and a run id.

    Nothing is deferred by the broker: a message held for later would lie in one worker's memory. Recovery sends when
    the time has come.
    """

    supports_defer = False

    def validate_task(self, task: Any) -> None:
        super().validate_task(task)
        if task.module_path != TASK:
            raise InvalidTask(f"The queue of Kampong carries {TASK} alone; give other tasks a backend of their own.")

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Send when the transaction that is open has committed; a broker that is away fails nothing."""
        self.validate_task(task)
        workspace, run_id = args
        transaction.on_commit(functools.partial(_send, workspace, run_id), robust=True)
        return TaskResult(
            task=task,
            id=str(uuid.uuid4()),
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=list(args),
            kwargs=dict(kwargs),
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )


def _send(workspace: str, run_id: str) -> None:
    # Only here: where Celery is not installed, a check has to say so, and not the import of the first task.
    import_module("workflows.brokers.sending").sender().send(workspace, run_id)
