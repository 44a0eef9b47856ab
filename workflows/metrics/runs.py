"""What the doors and the driver count: starts, ends, steps, calls, and claims that somebody else had."""

from __future__ import annotations

import logging
from functools import partial

from django.db import transaction

from workflows.bound import bound
from workflows.metrics.counters import Counter, Histogram, agents
from workflows.models import FINAL, Run, Status

logger = logging.getLogger("kampong.runs")

_CALLS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)

STARTED = Counter("kampong_runs_started_total", "Runs that this process registered.", ("agent", "surface"))
ENDED = Counter("kampong_runs_ended_total", "Runs that came to a final status in this process.", ("status", "agent"))
STEPS = Histogram(
    "kampong_step_seconds",
    "How long steps took that called a tool or a model: all attempts, and the waits between them.",
    ("kind",),
    _CALLS,
)
CALLS = Histogram(
    "kampong_call_seconds", "How long single calls of tools and models took.", ("kind", "outcome"), _CALLS
)
CLAIMS_LOST = Counter(
    "kampong_claims_lost_total",
    "Claims for which this process came too late: somebody else decided (`decision`), took the queued run (`run`) or "
    "the notice (`notice`), or took over or ended the run under way (`lease`).",
    ("what",),
    known=[("decision",), ("lease",), ("notice",), ("run",)],
)


def started(run: Run) -> None:
    """A run was registered: counted, and told with the request's id, when the transaction is committed."""
    transaction.on_commit(partial(_started, str(run.uuid), run.agent_id, run.workspace, run.surface))


def _started(run: str, agent: str, workspace: str, surface: str) -> None:
    STARTED.add(agents.name(agent), surface)
    with bound(run=run, agent=agent, workspace=workspace):
        logger.info("run started (%s)", surface)


def ended(run: Run, status: Status) -> None:
    """A run came to this status: counted when the transaction is committed, if it is a final one."""
    if status in FINAL:
        transaction.on_commit(partial(_ended, str(run.uuid), run.agent_id, run.workspace, str(status.value)))


def _ended(run: str, agent: str, workspace: str, status: str) -> None:
    ENDED.add(status, agents.name(agent))
    with bound(run=run, agent=agent, workspace=workspace):
        logger.info("run ended: %s", status)
