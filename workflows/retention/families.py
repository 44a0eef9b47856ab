"""A chain of runs and the chains called beside it, with what was asked on them: they are kept and go together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from django.db.models import QuerySet

from workflows.models import FINAL, Run, Status

#: What a run is in that does nothing more and waits for nothing.
OVER = FINAL | {Status.RESUMED}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request on a run; `closed_at` is None while it is open."""

    run: int
    closed_at: datetime | None


class Decisions(Protocol):
    """The approvals side: what was asked on runs, and its end. `approvals` registers the one implementation."""

    def asked(self, runs: Collection[int]) -> Iterable[Asked]:
        """Every request on these runs."""

    def remove(self, runs: Collection[int]) -> None:
        """Delete the requests on these runs with all that belongs to them, inside the caller's transaction.

        Never an entry of the audit.
        """


_decisions: Decisions | None = None


def register(decisions: Decisions) -> None:
    """Make this the side that knows what was asked."""
    global _decisions
    _decisions = decisions


def decisions() -> Decisions | None:
    """None where nobody can be asked: the approvals app is not installed."""
    return _decisions


@dataclass(frozen=True, kw_only=True)
class Member:
    """One run of a family; `newest` where its chain ends, unless it was called beside another."""

    pk: int
    status: str
    ended_at: datetime | None
    newest: bool
    pruned: bool


@dataclass(frozen=True, kw_only=True)
class Family:
    """`root` is the first run of the chain."""

    root: int
    runs: list[Member] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether nothing of it works or waits any more, neither a run nor a request."""
        ended = all(run.status in OVER and run.ended_at is not None for run in self.runs)
        return ended and all(one.closed_at is not None for one in self.asked)

    @property
    def end(self) -> datetime:
        """When the last of it ended; only of one that is over."""
        ended = [run.ended_at for run in self.runs] + [one.closed_at for one in self.asked]
        return max(moment for moment in ended if moment is not None)

    @property
    def newest(self) -> Member:
        """Where the chain ends."""
        return next(run for run in self.runs if run.newest)

    @property
    def ids(self) -> list[int]:
        return [run.pk for run in self.runs]


def seen(roots: Sequence[int]) -> list[Family]:
    """The families of these chains that are over, as they are read now; nothing is locked and nobody waits."""
    return _over(roots, Run.objects.all())


def locked(roots: Sequence[int]) -> list[Family]:
    """Those of them that nobody else is at, locked until the transaction ends.

    On PostgreSQL one that somebody else has locked (to retry it, to prune it) is left out, and nobody waits; on SQLite
    the transaction has the whole database.
    """
    return _over(roots, Run.objects.select_for_update(skip_locked=True, of=("self",)))


def _over(roots: Sequence[int], among: QuerySet[Run]) -> list[Family]:
    members = dict(_members(roots))
    # Asked first, and the runs read after it: a decision on the last open request writes both at once.
    side = decisions()
    asked = list(side.asked(members)) if side is not None else []
    families = {root: Family(root=root) for root in roots}
    for one in asked:
        families[members[one.run]].asked.append(one)
    rows = among.filter(pk__in=members).order_by("pk")
    columns = ("pk", "status", "ended_at", "root_id", "resumed_as_id", "pruned_at")
    for pk, status, ended_at, root, after, pruned_at in rows.values_list(*columns):
        family = families[members[pk]]
        newest, pruned = after is None and family.root in (pk, root), pruned_at is not None
        family.runs.append(Member(pk=pk, status=status, ended_at=ended_at, newest=newest, pruned=pruned))
    present = dict(_members(roots))
    return [family for family in families.values() if _whole(family, present) and family.over]


def _whole(family: Family, present: dict[int, int]) -> bool:
    """Whether every run of it is here: none locked by somebody else, none that came meanwhile."""
    return bool(family.runs) and set(family.ids) == {pk for pk, root in present.items() if root == family.root}


def _members(roots: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Every run of these families, with the first run of its family."""
    chains = {root: root for root in roots}
    heads: Collection[int] = roots
    while heads:
        beside = Run.objects.filter(beside__in=heads, root__isnull=True).values_list("pk", "beside_id")
        found = {pk: chains[caller] for pk, caller in beside if caller is not None and pk not in chains}
        chains |= found
        heads = found
    yield from chains.items()
    for pk, root in Run.objects.filter(root__in=chains).values_list("pk", "root_id"):
        if root is not None:
            yield pk, chains[root]
