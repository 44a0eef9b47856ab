"""What an operator sets back: a cursor, an overlap lock, an incident, a key that was seen, a wait. Each is audited.

Every door is one transaction with its audit entry, and takes the entry that was looked at and no other: where it
changed meanwhile nothing is done, and the refusal says so. A trigger's row is held before its entry, as by everybody.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from statestore.clock import DbNow, db_now
from statestore.entries import Versioned
from statestore.errors import StateStoreError
from statestore.faults import point
from statestore.keys import CURSOR, INCIDENT, LOCK, SEEN
from statestore.store import StateStore
from workflows.actors import Actor
from workflows.desk import Reset, desk
from workflows.errors import Invalid, NotPossible
from workflows.models import WORKSPACE, TriggerState
from workflows.runs import check_text
from workflows.times import rfc3339
from workflows.triggers import locks
from workflows.triggers.handover import POSITION
from workflows.triggers.locks import Holding

#: SHA-256 in hex, by which a key that was seen is known.
_MARK = re.compile(r"[0-9a-f]{64}")
#: How often the holder's own renewals may come between reading the lock and taking it away.
_TRIES = 5


def reset_cursor(
    agent_id: str, *, actor: Actor, reason: str, workspace: str = WORKSPACE, version: int | None = None
) -> Reset:
    """Let the next poll begin from the start, at once. What was seen stays seen and starts nothing again.

    A poll that is under way loses its hold, so it cannot write the old cursor back. `version` is that of the cursor
    that was looked at. Raises Invalid, NotPossible.
    """
    _need_reason(reason)
    what = Reset(workspace=workspace, agent_id=agent_id, what="cursor")
    with transaction.atomic():
        TriggerState.objects.filter(workspace=workspace, agent_id=agent_id, kind="poll").update(
            lease_token=F("lease_token") + 1, lease_until=None, due_at=DbNow(), retry_at=None
        )
        store = StateStore(workspace, agent_id, kinds=(CURSOR,))
        found = _read(store, POSITION, f"no poll of {agent_id} has a cursor: its next one begins from the start anyway")
        _take(store, POSITION, found, version, f"the cursor of {agent_id} moved meanwhile; look at the one that it has")
        _note(what, actor, reason)
    return what


def free_lock(agent_id: str, *, actor: Actor, reason: str, workspace: str = WORKSPACE, run: str | None = None) -> Reset:
    """Let the next due time start a run although the one that holds the lock is still going; that one goes on.

    `run` is the holder that was looked at. Raises Invalid, NotPossible.
    """
    _need_reason(reason)
    with transaction.atomic():
        held = next(iter(locks.look(workspace, [agent_id])), None)
        store = StateStore(workspace, agent_id, kinds=(LOCK,))
        entry = store.versioned(locks.KEY)
        going = held is not None and held.chain is not None and held.holding is not Holding.FREE
        if held is not None and held.chain is not None and going:
            holder = held.chain.root
        elif entry is not None:
            holder = str(entry.value["run"])
        else:
            raise NotPossible(f"no run holds the lock of {agent_id}; its next due time starts one")
        if run is not None and run != holder:
            raise NotPossible(f"run {holder} holds the lock of {agent_id} by now; look at that one first")
        if held is not None and going:
            same = TriggerState.objects.filter(pk=held.row.pk, last_run_id=held.row.last_run_id, lock_freed=False)
            if same.update(lock_freed=True) != 1:
                raise NotPossible(f"the lock of {agent_id} changed hands meanwhile; look again")
        due = _take_from(store, holder, f"the lock of {agent_id} changed hands meanwhile; look again")
        what = Reset(workspace=workspace, agent_id=agent_id, what="lock", run=holder, details=due)
        _note(what, actor, reason)
    return what


def close_incident(
    agent_id: str, key: str, *, actor: Actor, reason: str, workspace: str = WORKSPACE, version: int | None = None
) -> Reset:
    """Take an open incident away, as a `close` step does: the next alert opens another one.

    `version` is that of the incident that was looked at. Raises Invalid, NotPossible.
    """
    _need_reason(reason)
    name = f"{INCIDENT}{key}"
    with transaction.atomic():
        store = StateStore(workspace, agent_id, kinds=(INCIDENT,))
        found = _read(store, name, "this incident is closed by now, or its time was over; nothing is left to close")
        _take(store, name, found, version, "the incident was closed and another one opened meanwhile; look at that one")
        details = {"key": key, "openedAt": found.value["openedAt"]}
        run = str(found.value["runId"])
        what = Reset(workspace=workspace, agent_id=agent_id, what="incident", run=run, details=details)
        _note(what, actor, reason)
    return what


def forget_seen(
    agent_id: str, mark: str, *, actor: Actor, reason: str, workspace: str = WORKSPACE, version: int | None = None
) -> Reset:
    """Forget one item of a poll: it starts a run again when an answer holds it again. The cursor stays.

    `mark` is the SHA-256 of its key, in hex. Raises Invalid, NotPossible.
    """
    _need_reason(reason)
    if not _MARK.fullmatch(mark):
        raise Invalid(
            "an item is named by the SHA-256 of its key, 64 characters of 0-9 and a-f",
            [{"path": "mark", "message": "64 characters of 0-9 and a-f"}],
        )
    name = f"{SEEN}{mark}"
    with transaction.atomic():
        store = StateStore(workspace, agent_id, kinds=(SEEN,))
        found = _read(store, name, "this item is not among those that were seen, or its time was over")
        _take(store, name, found, version, "the item was forgotten and seen again meanwhile; look again")
        run = str(found.value["run"])
        what = Reset(workspace=workspace, agent_id=agent_id, what="seen", run=run, details={"fingerprint": mark})
        _note(what, actor, reason)
    return what


def try_now(
    agent_id: str,
    *,
    actor: Actor,
    reason: str = "",
    workspace: str = WORKSPACE,
    retry_at: datetime | None = None,
) -> Reset:
    """Try a trigger that was put off after failures at once; what it failed at counts on until it works again.

    It starts nothing itself and takes nothing away, so it needs no reason. `retry_at` is the next try that was looked
    at. Raises Invalid, NotPossible.
    """
    check_text(reason, "reason")
    with transaction.atomic():
        row = TriggerState.objects.filter(workspace=workspace, agent_id=agent_id).first()
        if row is None or row.retry_at is None or row.retry_at <= db_now():
            raise NotPossible(f"no trigger of {agent_id} is put off: it is tried whenever it is due")
        as_read = TriggerState.objects.filter(pk=row.pk, retry_at=row.retry_at)
        if retry_at not in (None, row.retry_at) or as_read.update(retry_at=None) != 1:
            raise NotPossible(f"{agent_id} was tried meanwhile and failed again; look at why first")
        details = {"retryAt": rfc3339(row.retry_at), "failures": row.failures}
        what = Reset(workspace=workspace, agent_id=agent_id, what="wait", details=details)
        _note(what, actor, reason)
    return what


def _read(store: StateStore, name: str, missing: str) -> Versioned:
    try:
        found = store.versioned(name)
    except StateStoreError as refusal:
        raise Invalid(str(refusal), [{"path": "key", "message": str(refusal)}]) from refusal
    if found is None:
        raise NotPossible(missing)
    return found


def _take(store: StateStore, name: str, found: Versioned, version: int | None, changed: str) -> None:
    """The very entry that was looked at, or nothing."""
    if version not in (None, found.version) or not store.delete(name, found.version):
        raise NotPossible(changed)


def _take_from(store: StateStore, holder: str, changed: str) -> dict[str, Any]:
    """Take the lock away from this run, however often it is renewed meanwhile; for which time it was due."""
    for _ in range(_TRIES):
        entry = store.versioned(locks.KEY)
        if entry is None:
            return {}
        if str(entry.value["run"]) != holder:
            break
        if store.delete(locks.KEY, entry.version):
            return {"due": entry.value["due"]}
    raise NotPossible(changed)


def _note(what: Reset, actor: Actor, reason: str) -> None:
    point("reset.taken")
    desk().note_reset(what, actor, reason.strip())
    point("reset.noted")


def _need_reason(reason: str) -> None:
    if not reason.strip():
        raise Invalid("a reason is needed", [{"path": "reason", "message": "say why, in a few words"}])
    check_text(reason, "reason")
