"""One run for one idempotency key, for a day (design 5.2). Key and run are written in one transaction."""

from __future__ import annotations

import hashlib

from statestore.entries import ABSENT
from statestore.store import StateStore
from workflows.errors import Busy, Invalid
from workflows.models import Run

KIND = "hook:"
SECONDS = 24 * 3600
_TRIES = 3


def claim(run: Run, key: str) -> str | None:
    """None: the key is this run's now. Otherwise the id of the run that the same request started earlier.

    Raises Invalid when the key was used for another input or other vars.
    """
    store = StateStore(run.workspace, run.agent_id, kinds=(KIND,))
    name = KIND + hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
    request = _fingerprint(run)
    for _ in range(_TRIES):
        if store.put_if_absent(name, {"run": str(run.uuid), "request": request}, ttl=SECONDS):
            return None
        earlier = store.get(name, ABSENT)
        if earlier is ABSENT:
            continue  # its day ended between the two statements
        if earlier["request"] != request:
            message = "this key was used for another request within a day; send a new one"
            raise Invalid(f"Idempotency-Key: {message}", [{"path": "Idempotency-Key", "message": message}])
        return str(earlier["run"])
    raise Busy("the idempotency key changes hands too quickly; try again in a moment")


def _fingerprint(run: Run) -> str:
    """What makes a repeat a repeat: the input and the vars. Headers differ from delivery to delivery."""
    parts = "\0".join((run.input, run.overrides))
    return hashlib.sha256(parts.encode()).hexdigest()
