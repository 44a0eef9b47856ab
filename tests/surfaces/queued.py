"""A long queue, written straight into the tables: thousands of runs that pause would take minutes."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from approvals.models import ApprovalRequest, Audience
from statestore.models import StateRecord
from workflows.models import Run


def many(run: Run, count: int, **changed: Any) -> list[ApprovalRequest]:
    """So many more requests like the run's own, each with its record and its audience."""
    like = ApprovalRequest.objects.filter(run=run).order_by("id")[0]
    record = StateRecord.objects.get(key=f"approval:{like.key}")
    fields = _fields(like) | changed
    keys = [uuid.uuid4() for _ in range(count)]
    requests = ApprovalRequest.objects.bulk_create(
        [ApprovalRequest(**fields | {"key": key}) for key in keys], batch_size=500
    )
    records = [StateRecord(**_fields(record) | {"key": f"approval:{key}"}) for key in keys]
    StateRecord.objects.bulk_create(records, batch_size=500)
    audience = list(like.audience.values("kind", "name"))
    Audience.objects.bulk_create(
        [Audience(request=request, **row) for request in requests for row in audience], batch_size=500
    )
    return requests


def _fields(row: Any) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if field.name != "id"}


def older(requests: list[ApprovalRequest], span: timedelta) -> None:
    """As if these had been asked so much earlier."""
    for request in requests:
        request.created_at -= span
    ApprovalRequest.objects.bulk_update(requests, ["created_at"], batch_size=500)
