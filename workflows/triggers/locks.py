"""The overlap lock of a schedule: a store entry with a lifetime, kept while the chain that it names is going (ST-11).

What is going is asked of the runs; the entry says so to everybody else, and how long a holder that nobody hears of any
more still counts. Whoever starts a run holds the trigger's row before the entry, and so does who puts one again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from django.db import transaction
from django.db.models import Q

from statestore.clock import db_now
from statestore.keys import LOCK
from statestore.models import StateRecord
from statestore.store import StateStore
from workflows.engine import jsontext
from workflows.models import FINAL, Run, Status, TriggerState
from workflows.times import rfc3339

#: The key of the entry, in the scope of the agent.
KEY = f"{LOCK}schedule"


class Holding(Enum):
    """Who has the lock: nobody; a chain that is going; a run whose worker is not heard of, until the entry lapses."""

    FREE = "free"
    GOING = "going"
    LOST = "lost"


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The chain that a trigger started last: the ids of its first and its newest run, and what becomes of that."""

    root: str
    newest: str
    status: str
    lease_until: datetime | None

    @property
    def final(self) -> bool:
        return self.status in FINAL

    def lost(self, moment: datetime) -> bool:
        """Whether its worker has not been heard of for a lease."""
        return self.status == Status.RUNNING and self.lease_until is not None and self.lease_until < moment


@dataclass(frozen=True, kw_only=True)
class Lock:
    """The entry, as it was read."""

    run: str
    version: int
    expires_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Held:
    """What stands for one trigger, at one moment."""

    row: TriggerState
    chain: Chain | None
    lock: Lock | None
    moment: datetime

    @property
    def holding(self) -> Holding:
        chain = self.chain
        if chain is None or chain.final or self.row.lock_freed:
            return Holding.FREE
        if chain.lost(self.moment):
            return Holding.LOST if self.is_locked else Holding.FREE
        return Holding.GOING

    @property
    def is_locked(self) -> bool:
        """Whether the entry is this chain's."""
        return self.lock is not None and self.chain is not None and self.lock.run == self.chain.root


def look(workspace: str, agent_ids: Iterable[str]) -> list[Held]:
    """The schedules of these agents, with what was started last and who has the lock; the longest due first."""
    rows = list(TriggerState.objects.filter(workspace=workspace, kind="schedule", agent_id__in=agent_ids))
    rows.sort(key=lambda row: (row.due_at, row.agent_id))
    if not rows:
        return []
    moment = db_now()
    chains = _chains([row.last_run_id for row in rows if row.last_run_id is not None])
    locks = _locks(workspace, moment)
    return [
        Held(row=row, chain=chains.get(row.last_run_id or 0), lock=locks.get(row.agent_id), moment=moment)
        for row in rows
    ]


def _chains(roots: list[int]) -> Mapping[int, Chain]:
    """The chains that start with these runs, by the first one's primary key."""
    if not roots:
        return {}
    newest = Run.objects.filter(Q(pk__in=roots) | Q(root_id__in=roots), resumed_as__isnull=True)
    columns = newest.values_list("pk", "uuid", "root_id", "root__uuid", "status", "lease_until")
    return {
        root_id or pk: Chain(root=str(root or uuid), newest=str(uuid), status=status, lease_until=lease_until)
        for pk, uuid, root_id, root, status, lease_until in columns
    }


def _locks(workspace: str, moment: datetime) -> Mapping[str, Lock]:
    """The entries that have not lapsed, by agent."""
    entries = StateRecord.objects.filter(workspace=workspace, key=KEY, expires_at__gt=moment)
    return {
        agent_id: Lock(run=_holder(value), version=version, expires_at=expires_at)
        for agent_id, value, version, expires_at in entries.values_list("workflow", "value", "version", "expires_at")
    }


def _holder(value: str) -> str:
    """The run that an entry names; nobody where it cannot be read, so that one torn row stops no other schedule."""
    try:
        return str(jsontext.loads(value)["run"])
    except (ValueError, TypeError, KeyError):
        return ""


def take(held: Held, run: Run, *, due: datetime, ttl: int) -> bool:
    """Make the lock this run's, in the transaction that starts it; False when it is not free after all.

    What is left of an earlier chain goes, if it is what was seen: an entry that came since is somebody's.
    """
    store = _store(held.row)
    if held.lock is not None:
        store.delete(KEY, held.lock.version)
    return store.put_if_absent(KEY, _value(str(run.uuid), due), ttl)


def keep(held: Held, ttl: int) -> None:
    """Give the lock of a chain that has ended back, renew that of one that is going, and put it again if it lapsed."""
    match held.holding:
        case Holding.FREE:
            if held.is_locked and held.lock is not None:
                _store(held.row).delete(KEY, held.lock.version)
        case Holding.GOING:
            if held.lock is None:
                _put_again(held, ttl)
            elif held.is_locked and _needs_renewal(held.lock, held.moment, ttl):
                _store(held.row).renew(KEY, held.lock.version, ttl)
        case Holding.LOST:
            # Not renewed: its lifetime frees it, if nobody finds out what became of the run.
            pass


def _needs_renewal(lock: Lock, moment: datetime, ttl: int) -> bool:
    """Whether a third of its lifetime is over, or the file gives it a shorter one now."""
    if lock.expires_at is None:
        return True
    left = lock.expires_at - moment
    whole = timedelta(seconds=ttl)
    return left < whole * 2 / 3 or left > whole


def _put_again(held: Held, ttl: int) -> None:
    """After an outage that was longer than its lifetime; never once an operator freed it."""
    row, chain = held.row, held.chain
    if chain is None:
        return
    with transaction.atomic():
        same = TriggerState.objects.filter(pk=row.pk, last_run_id=row.last_run_id, lock_freed=False)
        if same.update(lock_freed=False) == 1:
            _store(row).put_if_absent(KEY, _value(chain.root, row.last_due_at or row.due_at), ttl)


def _value(root: str, due: datetime) -> dict[str, str]:
    return {"run": root, "due": rfc3339(due)}


def _store(row: TriggerState) -> StateStore:
    return StateStore(row.workspace, row.agent_id, kinds=(LOCK,))
