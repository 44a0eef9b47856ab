"""How findings name things. A key of an approval is shown as its fingerprint: what a command prints goes anywhere."""

from __future__ import annotations

from datetime import datetime

from statestore.clock import db_now
from workflows import beats
from workflows.models import Run, Status

ACTIVE = (Status.QUEUED, Status.RUNNING, Status.AWAITING)


def name_of(run: Run) -> str:
    return f"run {run.uuid} of {run.agent_id}"


def step_of(run: Run) -> str:
    """` at step pay`; empty before the first."""
    return f" at step {run.step}" if run.step else ""


def workers() -> str:
    """Whether anybody is there to do it, in words that end a sentence."""
    living = len(beats.alive())
    if not living:
        return "no worker process is alive: start `serve` or `worker`"
    return f"{living} worker process{'es are' if living > 1 else ' is'} alive"


def late(since: datetime | None, seconds: float) -> bool:
    """Whether that was so long ago, by the clock of every query."""
    return since is not None and (db_now() - since).total_seconds() > seconds


def how_long(since: datetime) -> str:
    """`4 s`, `12 min`, `5 h`, `3 d`."""
    seconds = max(0, int((db_now() - since).total_seconds()))
    for most, unit, size in ((120, "s", 1), (7200, "min", 60), (48 * 3600, "h", 3600)):
        if seconds < most:
            return f"{seconds // size} {unit}"
    return f"{seconds // 86400} d"
