"""How what waits differs from what was asked first, as it is told over the wire: edits that stand, a changed spec."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from approvals import changes
from approvals.drift import Drift, StepChange, drift_of
from approvals.models import ApprovalRequest, Edit
from approvals.policy import policy_of
from approvals.records import Record
from workflows.engine.values import NOTHING
from workflows.times import rfc3339


def told(request: ApprovalRequest, record: Record) -> dict[str, Any]:
    """`editable` where anything may be changed, `edits` where some stand, `drift` where the spec changed."""
    found: dict[str, Any] = {}
    if policy_of(request).editable:
        found["editable"] = [asdict(one) for one in changes.offered(request, record)]
    if changes.standing(record):
        found["edits"] = _edits(request, record)
    drift = drift_of(request, record)
    if drift is not None:
        found["drift"] = _drift(drift)
    return found


def _edits(request: ApprovalRequest, record: Record) -> dict[str, Any]:
    """`{changes: [{path, before?, after}], by: [{by, at, reason?}], original?: {action, digest}}`."""
    listed: list[dict[str, Any]] = []
    for one in changes.differences(record):
        before = {} if one.before is NOTHING else {"before": one.before}
        listed.append({"path": one.path, **before, "after": one.after})
    by = [
        {"by": one.label, "at": rfc3339(one.at)} | ({"reason": one.reason} if one.reason else {})
        for one in Edit.objects.filter(request=request).order_by("id")
    ]
    original = record.get("proposed_from")
    first = {"original": {"action": original["action"], "digest": original["digest"]}} if original else {}
    return {"changes": listed, "by": by, **first}


def _drift(drift: Drift) -> dict[str, Any]:
    """Both sides of what differs; of steps that are the same, only their names."""
    return {
        "present": drift.present,
        "recorded": drift.recorded[:12],
        "now": drift.now[:12] if drift.now else None,
        "place": drift.place,
        "steps": [_change(one) for one in drift.steps],
        "others": [_change(one) for one in drift.others],
        "canRebind": drift.can_rebind,
        "whyNot": drift.why_not,
    }


def _change(change: StepChange) -> dict[str, str]:
    sides = {"before": change.before, "now": change.now} if change.state != "same" else {}
    return {"name": change.name, "state": change.state} | {side: text for side, text in sides.items() if text}
