"""The end of what has ended: whole chains of runs, in short transactions, safe in any number of processes at once.

A chain on which nobody was asked is deleted. Of one with a decision the rows stay as what the decision was about, and
what they read and made is removed (`pruned_at`), until `KAMPONG_KEEP_DECISIONS` is over as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import Q, QuerySet

from statestore.clock import DbNow, db_now
from statestore.faults import point
from workflows.models import Attempt, Run, RunEvent, SpecVersion, TriggerState
from workflows.retention import families, keeps
from workflows.retention.families import Family
from workflows.retention.keeps import Keep

#: Chains in one transaction.
BATCH = 20
#: Nothing goes sooner after its end, so that whoever waits for the answer or reads the stream has it.
SETTLED = timedelta(minutes=2)
_IDS_IN_A_STATEMENT = 500

#: A place in the order in which runs end.
Place: TypeAlias = tuple[datetime, int]
#: Behind every run that ended in the same moment.
_LAST = 2**63 - 1


def prune(limit: int = BATCH) -> int:
    """End at most `limit` chains that are kept no longer and say how many; call again while it says `limit`."""
    kept, done = keeps.of_runs(), 0
    if not kept:
        return 0
    moment = db_now()
    before = _decided_before(moment)
    agents = SpecVersion.objects.order_by("workspace", "agent_id").values_list("workspace", "agent_id").distinct()
    for workspace, agent_id in agents:
        for status, keep in kept.items():
            tips = _tips().filter(workspace=workspace, agent_id=agent_id, status=status, pruned_at__isnull=True)
            bounds = _bounds(tips, keep, moment)
            done += _end_each(_pages(tips, bounds.edge), bounds.has_passed, before, limit - done)
            if done >= limit:
                return done
    return done


def prune_decisions(limit: int = BATCH) -> int:
    """Delete at most `limit` pruned chains with what was decided on them, once that is over too, and say how many.

    `KAMPONG_KEEP_DECISIONS` counts from the end of the chain, and of the last request on it. The audit stays.
    """
    before, done = _decided_before(db_now()), 0
    if before is None:
        return 0
    for workspace in SpecVersion.objects.order_by("workspace").values_list("workspace", flat=True).distinct():
        tips = _tips().filter(workspace=workspace, pruned_at__isnull=False)
        done += _end_each(_pages(tips, (before, _LAST)), lambda family: family.newest.pruned, before, limit - done)
        if done >= limit:
            break
    return done


@dataclass(frozen=True, kw_only=True)
class _Bounds:
    """Up to where chains of one status go: by their age, and by how many have ended after them."""

    age: datetime | None
    number: Place | None
    settled: datetime

    @property
    def edge(self) -> Place | None:
        """No chain whose newest run ended behind this place goes; None: none goes at all."""
        number = min(self.number, (self.settled, _LAST)) if self.number is not None else None
        found = [place for place in (number, (self.age, _LAST) if self.age is not None else None) if place is not None]
        return max(found, default=None)

    def has_passed(self, family: Family) -> bool:
        """Its end is that of the last of it: what was called beside it may have come later."""
        if self.age is not None and family.end <= self.age:
            return True
        newest = family.newest
        if self.number is None or newest.ended_at is None or family.end > self.settled:
            return False
        return (newest.ended_at, newest.pk) <= self.number


def _bounds(tips: QuerySet[Run], keep: Keep, moment: datetime) -> _Bounds:
    settled = moment - SETTLED
    age = min(settled, _ago(moment, keep.seconds)) if keep.seconds is not None else None
    beyond = None
    if keep.number is not None:
        ended = tips.filter(ended_at__isnull=False).order_by("-ended_at", "-pk").values_list("ended_at", "pk")
        beyond = next(((at, pk) for at, pk in ended[keep.number : keep.number + 1] if at is not None), None)
    return _Bounds(age=age, number=beyond, settled=settled)


def _ago(moment: datetime, seconds: int) -> datetime:
    return moment - timedelta(seconds=seconds)


def _decided_before(moment: datetime) -> datetime | None:
    """Decisions on what ended by then go; None while they stay for ever."""
    seconds = keeps.of_decisions().seconds
    return None if seconds is None else _ago(moment - SETTLED, seconds)


def _tips() -> QuerySet[Run]:
    """The newest run of every chain that was started by itself."""
    return Run.objects.filter(resumed_as__isnull=True, beside__isnull=True)


def _pages(tips: QuerySet[Run], edge: Place | None) -> Callable[[int], Iterator[list[int]]]:
    """Pages of chains, by their first run, in the order in which they ended, up to the edge."""

    def pages(size: int) -> Iterator[list[int]]:
        if edge is None:
            return
        at, pk = edge
        upto = tips.filter(Q(ended_at__lt=at) | Q(pk__lte=pk), ended_at__lte=at).order_by("ended_at", "pk")
        rest = upto
        while found := list(rest.values_list("ended_at", "pk", "root_id")[:size]):
            yield [root or own for _, own, root in found]
            last_at, last_pk, _ = found[-1]
            rest = upto.filter(Q(ended_at__gt=last_at) | Q(pk__gt=last_pk), ended_at__gte=last_at)

    return pages


def _end_each(
    pages: Callable[[int], Iterator[list[int]]],
    passed: Callable[[Family], bool],
    before: datetime | None,
    limit: int,
) -> int:
    """How many chains of the pages were ended, at most `limit`.

    Those that must wait (for a request beside them, say) are passed over: a page that ends none is a read, and no
    transaction.
    """
    done = 0
    for roots in pages(max(1, min(limit, BATCH))):
        going = [family.root for family in families.seen(roots) if passed(family)]
        if going:
            done += _end(going[: limit - done], passed, before)
        if done >= limit:
            break
    return done


def _end(roots: Sequence[int], passed: Callable[[Family], bool], before: datetime | None) -> int:
    """One transaction: what nobody was asked about, and decisions that are over, whole; else all but the rows.

    What was pruned before, by another process a moment ago perhaps, only ever goes whole. Decisions on what ended by
    `before` are over.
    """
    whole: list[int] = []
    emptied: list[int] = []
    ended = 0
    with transaction.atomic():
        for family in families.locked(roots):
            over = not family.asked or (before is not None and family.end <= before)
            if passed(family) and (over or not family.newest.pruned):
                (whole if over else emptied).extend(family.ids)
                ended += 1
        _delete(whole)
        _empty(emptied)
        point("retention.removed")
    if ended:
        point("retention.batch")
    return ended


def _delete(runs: Sequence[int]) -> None:
    """The runs with all that hangs on them. Foreign keys are checked at the end: a chain goes whole."""
    side = families.decisions()
    for part in _parts(runs):
        if side is not None:
            side.remove(part)
        _delete_story(part)
        TriggerState.objects.filter(last_run__in=part).update(last_run=None)
        # As it is: Django would load every row, and refuse because others of the same chain protect it.
        Run.objects.filter(pk__in=part)._raw_delete(using=DEFAULT_DB_ALIAS)


def _empty(runs: Sequence[int]) -> None:
    """Of the runs stay status, times, place in the chain and decision."""
    for part in _parts(runs):
        _delete_story(part)
        Run.objects.filter(pk__in=part).update(
            input="", trigger="", overrides="", outputs="", held_keys="", pruned_at=DbNow()
        )


def _delete_story(runs: Sequence[int]) -> None:
    RunEvent.objects.filter(run__in=runs).delete()
    Attempt.objects.filter(run__in=runs).delete()


def _parts(runs: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(runs), _IDS_IN_A_STATEMENT):
        yield runs[start : start + _IDS_IN_A_STATEMENT]
