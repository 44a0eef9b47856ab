"""What becomes of a run after a command set it going: driven here, or by a worker that lives, to its next rest."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from approvals.narrowing import Narrowing
from approvals.queue import waiting
from statestore.clock import now
from workflows.advance import advance
from workflows.beats import alive
from workflows.journal import Listener
from workflows.management.acting import as_words
from workflows.management.base import DONE, INTERRUPTED, REFUSED, WAITING, Stop
from workflows.management.terminal import one_line, plain, pretty, time_left, to_type
from workflows.models import FINAL, Run, Status
from workflows.reading import own_state, wait_for
from workflows.runs import newest
from workflows.waiting import awaited
from workflows.waits import Waiter

PATIENCE_SECONDS = 60.0


def to_rest(
    run: Run,
    *,
    here: bool,
    seconds: float = PATIENCE_SECONDS,
    tell: Listener | None = None,
    waiter: Waiter | None = None,
) -> Run:
    """The chain's newest run once it waits for a person or has ended; after so many seconds of waiting, as it is.

    A run that waits for a time beyond them is not waited for.

    `here`: this process drives it in any case; otherwise only while no worker lives. `tell` hears the events of
    what is driven here, and `waiter` its waits.
    """
    until = time.monotonic() + seconds
    try:
        while True:
            run = newest(Run.objects.get(pk=run.pk))
            if run.status in FINAL or run.status == Status.AWAITING:
                return run
            if run.status == Status.QUEUED and (here or not alive()):
                advance(run.workspace, str(run.uuid), tell, waiter)
                run = newest(Run.objects.get(pk=run.pk))
            left = until - time.monotonic()
            if run.status in FINAL or run.status == Status.AWAITING or left <= 0 or _is_away(run, left):
                return run
            wait_for(run, min(left, 1.0))
    except KeyboardInterrupt:
        raise Stop(
            f"Interrupted. Run {run.uuid} is stored: a worker, or `recover` once its lease is over, takes it up.",
            code=INTERRUPTED,
        ) from None


def _is_away(run: Run, seconds: float) -> bool:
    """Whether no worker may take the run within so many seconds."""
    due = run.not_before
    return run.status == Status.QUEUED and due is not None and (due - now()).total_seconds() > seconds


@dataclass(frozen=True, kw_only=True)
class Rest:
    """Where a run stands, in words for stdout (`lines`) or stderr (`complaint`), and the exit code that says so.

    `pending` is its line of the queue while it waits.
    """

    code: int
    state: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    complaint: str = ""
    pending: dict[str, Any] | None = None


def rest_of(run: Run, as_user: str | None = None) -> Rest:
    """Describe a run that `to_rest` returned, to somebody who acts as this user."""
    state = own_state(run)
    if run.status == Status.AWAITING:
        found = waiting(run.workspace, by=Narrowing(run=str(run.uuid)), blocking=True).items
        pending = found[0] if found else None
        return Rest(code=WAITING, state=state, lines=_waits(run, pending, as_words(as_user)), pending=pending)
    if run.status == Status.COMPLETED:
        return Rest(code=DONE, state=state, lines=[f"Run {run.uuid} completed.", pretty(state.get("finalOutput", {}))])
    if run.status in FINAL:
        words = plain(f"Run {run.uuid} {run.status}: {run.error or 'no reason was given'}")
        return Rest(code=REFUSED, state=state, complaint=words)
    wait = awaited(run)
    stands = f"waits {wait}; a worker goes on with it then" if wait else "is still running"
    words = f"Run {run.uuid} {stands}. Look again with: {to_type(f'runs show {run.uuid}')}"
    return Rest(code=DONE, state=state, lines=[words])


def _waits(run: Run, pending: dict[str, Any] | None, who: str) -> list[str]:
    if pending is None:
        return [f"Run {run.uuid} waits for a person no longer: its approval was decided or expired a moment ago."]
    key = pending["key"]
    left = time_left(datetime.fromisoformat(pending["expiresAt"]), now())
    return [
        f"Run {run.uuid} waits for approval.",
        f'  step "{one_line(pending["step"])}", {pending["kind"]}: {one_line(pending["reason"])}',
        f"  key {key}, {left} left (until {pending['expiresAt']})",
        f"Look:   {to_type(f'approvals show {key}{who}')}",
        f"Decide: {to_type(f'approvals approve {key}{who}')}   (or reject, with --reason)",
    ]
