"""Keys that steps take on the store, and incidents (spec 1.2, *Steps on the store*): the driver's side.

Each operation is one or two statements in the caller's transaction, which also keeps that the step is completed. A key
names the first run of the chain that took it, so the same chain that asks again is answered as the first.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from django.db.models import Q, QuerySet

from statestore.clock import now
from statestore.entries import ABSENT
from statestore.errors import StateStoreError
from statestore.keys import INCIDENT, ONCE
from statestore.store import StateStore
from workflows.engine import jsontext
from workflows.engine.effects import (
    AskModel,
    CallTool,
    ClaimKey,
    CloseIncident,
    IncidentClosed,
    IncidentOpened,
    KeyClaimed,
    KeyEffect,
    KeyOutcome,
    KeyRefused,
    OpenIncident,
)
from workflows.engine.values import Json
from workflows.models import Attempt, Run
from workflows.times import rfc3339

#: How often a key may come and go between two statements before the step fails.
_TRIES = 10
_CONTESTED = "it was taken and given back while it was asked for; try again"


@dataclass(frozen=True, kw_only=True)
class Performed:
    """`wrote`: the store is changed, so the step's completion has to be kept with it."""

    outcome: KeyOutcome
    wrote: bool


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The keys of one agent in one workspace, for the chain that starts with run `root`."""

    workspace: str
    agent_id: str
    root: str

    def perform(self, effect: KeyEffect) -> Performed:
        """Do what the step asks. What the store refuses is an outcome; nothing is written then."""
        try:
            match effect:
                case ClaimKey():
                    return self._claim(effect.key, effect.ttl)
                case OpenIncident():
                    return self._open(effect)
                case CloseIncident():
                    return self._close(effect.key)
        except StateStoreError as refusal:
            return Performed(outcome=KeyRefused(reason=str(refusal)), wrote=False)

    def claim(self, key: str, ttl: int) -> bool:
        """Whether the key is this chain's, now or already."""
        return self._claim(key, ttl).outcome == KeyClaimed()

    def give_back(self, key: str) -> None:
        """Free the key if it is still this chain's: a delete of the very entry that names its root."""
        store = self._store(ONCE)
        found = store.versioned(f"{ONCE}{key}")
        if found is not None and found.value["run"] == self.root:
            store.delete(f"{ONCE}{key}", found.version)

    def _claim(self, key: str, ttl: int) -> Performed:
        store = self._store(ONCE)
        for _ in range(_TRIES):
            if store.put_if_absent(f"{ONCE}{key}", {"run": self.root}, ttl):
                return Performed(outcome=KeyClaimed(), wrote=True)
            found = store.get(f"{ONCE}{key}")
            if found is not None:
                holder = found["run"]
                return Performed(outcome=KeyClaimed(holder=None if holder == self.root else holder), wrote=False)
        return Performed(outcome=KeyRefused(reason=_CONTESTED), wrote=False)

    def _open(self, effect: OpenIncident) -> Performed:
        store, key = self._store(INCIDENT), f"{INCIDENT}{effect.key}"
        record = {"value": effect.value, "openedAt": rfc3339(now()), "runId": self.root}
        for _ in range(_TRIES):
            if store.put_if_absent(key, record, effect.ttl):
                return Performed(
                    outcome=IncidentOpened(opened=True, incident=_incident(effect.key, record)), wrote=True
                )
            found = store.get(key)
            if found is not None:
                outcome = IncidentOpened(opened=found["runId"] == self.root, incident=_incident(effect.key, found))
                return Performed(outcome=outcome, wrote=False)
        return Performed(outcome=KeyRefused(reason=_CONTESTED), wrote=False)

    def _close(self, key: str) -> Performed:
        found = self._store(INCIDENT).claim(f"{INCIDENT}{key}")
        if found is ABSENT:
            return Performed(outcome=IncidentClosed(incident=None), wrote=False)
        return Performed(outcome=IncidentClosed(incident=_incident(key, found)), wrote=True)

    def _store(self, kind: str) -> StateStore:
        return StateStore(self.workspace, self.agent_id, kinds=(kind,))


def _incident(key: str, record: dict[str, Json]) -> dict[str, Json]:
    return {"key": key, **record}


def leaves_no_trace(effect: AskModel | CallTool) -> bool:
    """Whether the call changes nothing outside: a GET. Whatever is asked of a model is kept by somebody."""
    return isinstance(effect, CallTool) and effect.call.method == "GET"


# The chain in the database ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Held:
    """A key that a run of the chain took and that a failure gives back; `released` when one did."""

    key: str
    ttl: int
    step: str
    released: bool = False


def keys_of(run: Run) -> Keys:
    """The keys of this run's chain."""
    return Keys(
        workspace=run.workspace,
        agent_id=run.agent_id,
        root=str(run.uuid if run.root is None else run.root.uuid),
    )


def load_held(text: str) -> list[Held]:
    """What `dump_held` made of it."""
    return [Held(**one) for one in jsontext.loads(text)] if text else []


def dump_held(held: list[Held]) -> str:
    """For the run's row."""
    return jsontext.dumps([asdict(one) for one in held]) if held else ""


def release(run: Run) -> None:
    """Give back what the chain took, if it called nobody but by GET. In the transaction that ends it as `failed`.

    Nobody acted on the key then, so whoever comes next may.
    """
    holding = list(_holding(run))
    if not holding or _acted(run):
        return
    keys = keys_of(run)
    for one in holding:
        held = load_held(one.held_keys)
        for taken in held:
            if not taken.released:
                keys.give_back(taken.key)
        Run.objects.filter(pk=one.pk).update(held_keys=dump_held([replace(taken, released=True) for taken in held]))


def take_again(run: Run) -> frozenset[str]:
    """Take again what was given back when the chain failed, in the transaction that retries it.

    The names of the steps whose key another chain has by now.
    """
    keys = keys_of(run)
    lost: set[str] = set()
    for one in _holding(run):
        held = load_held(one.held_keys)
        again = [taken for taken in held if taken.released and keys.claim(taken.key, taken.ttl)]
        lost.update(taken.step for taken in held if taken.released and taken not in again)
        if again:
            held = [replace(taken, released=False) if taken in again else taken for taken in held]
            Run.objects.filter(pk=one.pk).update(held_keys=dump_held(held))
    return frozenset(lost)


def _chain(run: Run) -> Q:
    return Q(pk=run.root_id_or_own) | Q(root=run.root_id_or_own)


def _holding(run: Run) -> QuerySet[Run]:
    return Run.objects.filter(_chain(run)).exclude(held_keys="").order_by("pk")


def _acted(run: Run) -> bool:
    """Whether the chain, or what a decision on it called beside, made a call that may have changed something."""
    runs = Run.objects.filter(_chain(run) | Q(beside=run.root_id_or_own))
    return Attempt.objects.filter(run__in=runs, safe=False).exists()
