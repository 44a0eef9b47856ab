"""Entries of the store that outlived what they stand for, and triggers that are late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from statestore import jsontext, keys
from statestore.clock import DbNow, db_now
from statestore.models import StateRecord
from statestore.upkeep import purge_expired
from workflows.models import FINAL, Run
from workflows.repair.findings import LATE_SECONDS, Check, Finding, Scope, need
from workflows.repair.words import how_long, late, workers
from workflows.triggers import lateness, locks

_PAGE = 500
#: The purge runs every minute, and goes on at once where there is more.
_UNPURGED_SECONDS = 3600


def of_kind(kind: str) -> Iterator[dict[int, str]]:
    """The keys of every entry of a reserved kind by primary key, in pages; one range of the index each."""
    for workspace in workspaces():
        entries = StateRecord.objects.filter(workspace=workspace, key__gte=kind, key__lt=keys.range_end(kind))
        place: tuple[str, int] = ("", 0)
        while page := list(
            entries.filter(Q(key__gt=place[0]) | Q(key=place[0], pk__gt=place[1]))
            .order_by("key", "pk")
            .values_list("pk", "key")[:_PAGE]
        ):
            yield dict(page)
            place = (page[-1][1], page[-1][0])


def workspaces() -> Iterator[str]:
    """Every workspace that has an entry, one look at the index each."""
    found = ""
    while (
        following := StateRecord.objects.filter(workspace__gt=found)
        .order_by("workspace")
        .values_list("workspace", flat=True)
        .first()
    ) is not None:
        yield following
        found = following


def read(value: str) -> dict[str, Any]:
    """What an entry holds; nothing where it cannot be read."""
    try:
        held = jsontext.loads(value)
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}


def lock_entry(pk: int) -> None:
    """Nobody takes or changes the entry until the transaction ends."""
    StateRecord.objects.select_for_update().filter(pk=pk).values_list("pk").first()


def delete_entry(entry: StateRecord) -> None:
    """The entry as it was read, and no other."""
    need(StateRecord.objects.filter(pk=entry.pk, version=entry.version).delete()[0])


# Locks ---------------------------------------------------------------------------------------------------------


def _locks(scope: Scope) -> Iterator[int]:
    for page in of_kind(keys.LOCK):
        held = StateRecord.objects.filter(pk__in=page).order_by("pk").values_list("pk", "value")
        yield from (pk for pk, value in held if _over(read(value).get("run")) is not None)


def _over(root: Any) -> Run | None:
    """The newest run of this chain when that is final."""
    first = Run.objects.filter(uuid=root).first() if isinstance(root, str) and len(root) == 36 else None
    if first is None:
        return None
    newest = Run.objects.filter(Q(pk=first.pk) | Q(root=first.pk), resumed_as__isnull=True).order_by("-pk").first()
    return newest if newest is not None and newest.status in FINAL else None


def _judge_lock(pk: int) -> Finding | None:
    entry = StateRecord.objects.filter(pk=pk).first()
    newest = _over(read(entry.value).get("run")) if entry is not None else None
    if entry is None or newest is None or newest.ended_at is None or not late(newest.ended_at, LATE_SECONDS):
        return None
    return Finding(
        code="lock_left",
        subject=f"{entry.key} of {entry.workflow}",
        run=str(newest.uuid),
        since=newest.ended_at,
        what=f"the lock is held for run {newest.uuid}, which is {newest.status}",
        means="nothing that waits for the lock starts until its lifetime is over; a scheduler frees such locks at once",
        fix="frees it, as the scheduler would",
        mend=lambda by: delete_entry(entry),
    )


# Triggers ------------------------------------------------------------------------------------------------------


def _late(scope: Scope) -> Iterator[tuple[int, lateness.Timed]]:
    """Rows that are due for long, with the trigger that their files have; others are never due."""
    rows = list(lateness.due_for_long().values_list("pk", "agent_id"))
    served = lateness.served() if rows else {}
    yield from ((pk, served[agent_id]) for pk, agent_id in rows if agent_id in served)


def _judge_late(suspect: tuple[int, lateness.Timed]) -> Finding | None:
    pk, trigger = suspect
    row = lateness.due_for_long().filter(pk=pk).first()
    if row is None:
        return None
    # A poll waits for no run, and is not among these.
    held = next(iter(locks.look(row.workspace, [row.agent_id])), None)
    if not lateness.is_overdue(row, trigger, held, db_now()):
        return None
    return Finding(
        code="trigger_late",
        subject=str(row),
        since=row.due_at,
        what=f"it has been due for {how_long(row.due_at)} and was not fired",
        means="a run that should have been started was not; the time is made up for once",
        move="start `serve` or `scheduler` with this spec; its log says why where it refuses",
    )


# The purge -----------------------------------------------------------------------------------------------------


def _expired() -> Any:
    approvals = Q(key__gte=keys.APPROVAL, key__lt=keys.range_end(keys.APPROVAL))
    return StateRecord.objects.filter(expires_at__lt=DbNow(-_UNPURGED_SECONDS)).exclude(approvals)


def _once(scope: Scope) -> tuple[str]:
    return ("",)


def _judge_purge(suspect: str) -> Finding | None:
    oldest = _expired().order_by("expires_at").first()
    if oldest is None:
        return None

    def purge(by: object) -> None:
        need(1 if purge_expired() else 0)

    return Finding(
        code="entries_not_purged",
        subject="the store",
        since=oldest.expires_at,
        what="entries that are over lie in it and nobody purges them",
        means=f"they count for nobody and only take space; workers purge every minute; {workers()}",
        fix="purges some of them, in five rounds at most; `sweep` purges all",
        mend=purge,
    )


CHECKS = (
    Check(name="locks", codes=("lock_left",), suspects=_locks, judge=_judge_lock, lock=lock_entry),
    Check(name="triggers", codes=("trigger_late",), suspects=_late, judge=_judge_late),
    Check(name="purge", codes=("entries_not_purged",), suspects=_once, judge=_judge_purge),
)
