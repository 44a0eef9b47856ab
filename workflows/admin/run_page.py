"""One run as a page: where it stands and what to do next, what it did, and the chain that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from approvals.audit import done_in_words
from approvals.errors import in_words
from approvals.models import ApprovalRequest, AuditEntry, RequestStatus
from statestore.clock import now
from workflows import beats
from workflows.admin.words import Badge, Data, ago, badge, clipped, data, duration
from workflows.engine.values import NOTHING
from workflows.models import Attempt, Run, Status
from workflows.reading import companions_of, own_state
from workflows.times import rfc3339
from workflows.waiting import awaited

_STEP_BADGES = {"completed": Badge(text="completed", tone="good"), "rejected": Badge(text="rejected", tone="quiet")}


@dataclass(frozen=True, kw_only=True)
class StepLine:
    """One record of the trace."""

    step: str
    badge: Badge
    output: Data | None
    confidence: str
    error: str


@dataclass(frozen=True, kw_only=True)
class AttemptLine:
    """One call that left the process, or that is out there now."""

    n: int
    step: str
    kind: str
    name: str
    started: datetime
    ended: datetime | None
    outcome: str
    badge: Badge


@dataclass(frozen=True, kw_only=True)
class ChainLine:
    """One run of the chain, and what people and rules did with it."""

    run: Run
    number: int
    badge: Badge
    step: str
    is_this: bool
    acts: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """The request that this run waits for."""

    request: ApprovalRequest
    left: str


def chain_of(run: Run) -> list[Run]:
    """Every run of this run's chain, the first one first."""
    root = run.root_id_or_own
    return list(Run.objects.filter(Q(pk=root) | Q(root_id=root), workspace=run.workspace).order_by("pk"))


def told(run: Run) -> dict[str, Any]:
    """Everything that the page says about this run; reading only."""
    state = own_state(run)
    chain = chain_of(run)
    waiting = _waiting(run)
    return {
        "run": run,
        "badge": badge(run.status),
        "step": clipped(run.step, 200),
        "sentence": _sentence(run, waiting),
        "next_move": _next_move(run),
        "waiting": waiting,
        "newest": chain[-1] if chain[-1].pk != run.pk else None,
        "error": run.error if run.status != Status.RESUMED else "",
        "input": data(run.input) if run.input else None,
        "final_output": data(state["finalOutput"]) if state.get("finalOutput", NOTHING) is not NOTHING else None,
        "trace": [_step_line(record) for record in state["trace"]],
        "attempts": [_attempt_line(attempt) for attempt in Attempt.objects.filter(run=run).order_by("n")],
        "chain": list(_chain_lines(chain, run)),
        "beside": run.beside,
        "companions": [(one, badge(one.status)) for one in companions_of(run)],
        "asked_ago": ago(run.created_at),
        "took": duration(run.ended_at - run.created_at) if run.ended_at else "",
    }


def _waiting(run: Run) -> Waiting | None:
    if run.status != Status.AWAITING:
        return None
    gates = ApprovalRequest.objects.filter(run=run, status=RequestStatus.OPEN, mode="gate")
    request = gates.order_by("pk").last()
    if request is None:
        return None
    left = request.expires_at - now()
    return Waiting(request=request, left=duration(left) if left.total_seconds() > 0 else "")


def _sentence(run: Run, waiting: Waiting | None) -> str:
    """Where the run stands, in words."""
    step = f" at step “{clipped(run.step, 120)}”" if run.step else ""
    wait = awaited(run)
    if wait:
        return f"The run waits{step} {wait}."
    if run.status == Status.QUEUED:
        return "The run is in the queue for a worker."
    if run.status == Status.AWAITING:
        if waiting is not None and not waiting.left:
            return f"The run waited for a person{step}, and the time is over: it is about to end as expired."
        return f"The run waits for a person{step}."
    return {
        Status.RUNNING: f"The run is working{step}.",
        Status.RESUMED: f"This part of the run ended{step}; the run went on.",
        Status.COMPLETED: "The run is done.",
        Status.REJECTED: f"The run ended{step}: somebody said no.",
        Status.FAILED: f"The run failed{step}.",
        Status.EXPIRED: f"Nobody decided in time{step}; the run ended.",
        Status.CANCELLED: f"The run was cancelled{step}.",
        Status.INTERRUPTED: f"The run lost its worker{step}.",
    }[Status(run.status)]


def _next_move(run: Run) -> str:
    """What a reader can do now; "" when there is nothing to do."""
    if run.pruned_at is not None:
        return ""
    if run.status == Status.QUEUED and not beats.alive():
        return "No worker was seen in the last seconds. Start one: manage.py serve, or manage.py worker."
    return {
        Status.FAILED: "Retry goes on at this step with the same outputs. A changed spec needs a new run.",
        Status.EXPIRED: "Start a new run to ask again.",
        Status.INTERRUPTED: "Whether its last call took effect is not known. Look at the other side, then choose "
        "Retry, which makes the call again, or Give up.",
    }.get(Status(run.status), "")


def _step_line(record: dict[str, Any]) -> StepLine:
    status = str(record["status"])
    confidence = record.get("confidence")
    return StepLine(
        step=clipped(str(record["step"]), 200),
        badge=_STEP_BADGES.get(status, Badge(text=status, tone="bad")),
        output=data(record["output"]) if "output" in record else None,
        confidence="" if confidence is None else data(confidence).short,
        error=str(record.get("error", "")),
    )


def _attempt_line(attempt: Attempt) -> AttemptLine:
    if attempt.ended_at is None:
        shown = Badge(text="open", tone="wait")
    elif attempt.outcome == "ok":
        shown = Badge(text="ok", tone="good")
    else:
        shown = Badge(text="failed", tone="bad")
    return AttemptLine(
        n=attempt.n,
        step=clipped(attempt.step, 120),
        kind=attempt.kind,
        name=clipped(attempt.name, 120),
        started=attempt.started_at,
        ended=attempt.ended_at,
        outcome="" if attempt.outcome == "ok" else attempt.outcome,
        badge=shown,
    )


def _chain_lines(chain: Sequence[Run], this: Run) -> Iterator[ChainLine]:
    ids = [str(run.uuid) for run in chain]
    acts: dict[str, list[str]] = {name: [] for name in ids}
    for entry in AuditEntry.objects.filter(workspace=this.workspace, run__in=ids).order_by("pk"):
        acts[entry.run].append(_act_in_words(entry))
    for number, run in enumerate(chain, start=1):
        yield ChainLine(
            run=run,
            number=number,
            badge=badge(run.status),
            step=clipped(run.step, 120),
            is_this=run.pk == this.pk,
            acts=acts[str(run.uuid)],
        )


def _act_in_words(entry: AuditEntry) -> str:
    """`approved by Asha on 2026-11-29 at 10:00 UTC (admin): looks right`."""
    told = {"outcome": done_in_words(entry), "by": entry.actor, "at": rfc3339(entry.at), "surface": entry.surface}
    reason = f": {entry.reason}" if entry.reason else ""
    return in_words(told) + reason
