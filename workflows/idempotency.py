"""One run for one idempotency key, for a day (design 5.2), and for one delivery of a webhook (spec 1.2, `dedupe`).

Key and run are written in one transaction. Of a key only its fingerprint is kept: any text can be one, and what it
tells of people is in no row.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from statestore.entries import ABSENT
from statestore.store import StateStore
from workflows.engine.values import Json
from workflows.errors import Busy, Invalid
from workflows.models import Run

KIND = "hook:"
#: Before the fingerprint of a delivery, so that no idempotency key is taken for one.
DELIVERY = "hook:delivery:"
SECONDS = 24 * 3600
_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What tells a delivery from others, and for how many seconds a repeat of it starts nothing."""

    key: str
    seconds: int


def claim(run: Run, key: str) -> str | None:
    """None: the key is this run's now. Otherwise the id of the run that the same request started earlier.

    Raises Invalid when the key was used for another input or other vars.
    """
    request = _fingerprint(run)
    earlier = _take(run, KIND + _hashed(key), {"run": str(run.uuid), "request": request}, SECONDS)
    if earlier is not None and earlier["request"] != request:
        message = "this key was used for another request within a day; send a new one"
        raise Invalid(f"Idempotency-Key: {message}", [{"path": "Idempotency-Key", "message": message}])
    return None if earlier is None else str(earlier["run"])


def claim_delivery(run: Run, delivery: Delivery) -> str | None:
    """None: the delivery is this run's now. Otherwise the id of the run that it started the first time."""
    earlier = _take(run, DELIVERY + _hashed(delivery.key), {"run": str(run.uuid)}, delivery.seconds)
    return None if earlier is None else str(earlier["run"])


def _take(run: Run, name: str, value: dict[str, Json], seconds: int) -> dict[str, Json] | None:
    """None when the name is this run's now; otherwise what is kept under it."""
    store = StateStore(run.workspace, run.agent_id, kinds=(KIND,))
    for _ in range(_TRIES):
        if store.put_if_absent(name, value, ttl=seconds):
            return None
        earlier = store.get(name, ABSENT)
        if earlier is not ABSENT:
            return dict(earlier)
        # Its time ended between the two statements.
    raise Busy("the key of this request changes hands too quickly; try again in a moment")


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def _fingerprint(run: Run) -> str:
    """What makes a repeat a repeat: the input and the vars. Headers differ from delivery to delivery."""
    parts = "\0".join((run.input, run.overrides))
    return hashlib.sha256(parts.encode()).hexdigest()
