"""A changed spec on the decision page: what differs, step by step, and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from approvals import rebinding
from approvals.admin import difference
from approvals.admin.difference import Difference
from approvals.drift import Drift, StepChange
from approvals.models import ApprovalRequest
from workflows.actors import Actor
from workflows.admin.words import Badge, clipped, visible

_PLACES = {
    "before": "The change lies before the step that waits. What ran there stays as it is; it does not run again.",
    "on": "The step that waits was changed itself.",
    "after": "The change lies after the step that waits, in what is still to run.",
    "several": "The changes lie in several places, seen from the step that waits.",
    "elsewhere": "No step was changed, but something else in the file was.",
}
_TONES = {"same": "quiet", "changed": "wait", "added": "good", "removed": "bad", "moved": "busy"}
_WORDS = {"same": "the same", "removed": "taken away"}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One step, or another part of the file; `waits` is the step of the request."""

    name: str
    badge: Badge
    waits: bool = False
    difference: Difference | None = None


def told(row: ApprovalRequest, drift: Drift, actor: Actor) -> dict[str, Any]:
    """What the page says of the drift."""
    return {
        "drift": drift,
        "place": _PLACES[drift.place] if drift.present else "",
        "steps": [_part(one, waits=one.name == row.step) for one in drift.steps],
        "others": [_part(one) for one in drift.others],
        "why_not_rebind": visible(drift.why_not),
        "may_rebind": rebinding.may_rebind(row, actor),
    }


def _part(one: StepChange, *, waits: bool = False) -> Part:
    differs = one.state in ("changed", "added", "removed")
    return Part(
        name=clipped(one.name, 120),
        badge=Badge(text=_WORDS.get(one.state, one.state), tone=_TONES[one.state]),
        waits=waits,
        difference=difference.between_lines(one.before.splitlines(), one.now.splitlines()) if differs else None,
    )
