"""From the answer of a poll to its runs: each new item once, whatever happens in between (ST-10).

Items go in batches, each one transaction: the fence, then for every item the key that says it was seen and its run.
The last batch moves the position and the due time as well. A kill at any line leaves batches that are known by their
keys, and a position that stands before them: what is polled again starts what is missing and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F

from statestore.clock import DbNow, db_now
from statestore.errors import StateStoreError
from statestore.faults import point
from statestore.keys import CURSOR, SEEN
from statestore.scope import encode
from statestore.store import StateStore
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.engine.polling import Item, Polled, PollFailed
from workflows.engine.values import NOTHING, Json
from workflows.errors import Invalid, TooLarge
from workflows.models import Run
from workflows.registry import SpecFile
from workflows.runs import check_input, start_runs
from workflows.spec.trigger_model import FIRST_CURSOR, PollTrigger
from workflows.triggers.hold import Hold

POSITION: Final = f"{CURSOR}poll"
#: Items in one transaction. On SQLite everybody waits for its end, which a thousand would put off for a second.
BATCH: Final = 100


@dataclass(frozen=True, kw_only=True)
class _Sorted:
    """The items of an answer that nobody has seen, by the name of their key, and the keys to be kept for longer."""

    fresh: list[tuple[str, Item]]
    ageing: list[tuple[str, int]]


def starter(agent_id: str) -> Actor:
    """Who starts the runs of a poll: nobody but its answers."""
    return Actor(label=f"poll of {agent_id}", surface="poll")


class Handover:
    """One poll's way from the position to the runs, under its hold."""

    def __init__(self, file: SpecFile, trigger: PollTrigger, hold: Hold) -> None:
        self._file, self._trigger, self._hold = file, trigger, hold
        self._workspace = hold.row.workspace
        self._store = StateStore(self._workspace, file.agent_id, kinds=(CURSOR, SEEN))
        self.position: Json = self._store.get(POSITION, FIRST_CURSOR)

    def hand_over(self, polled: Polled) -> int:
        """Start a run for each new item, then move on; how many were started.

        Raises PollFailed, with nothing started, for an item or a position that cannot be kept; LeaseLost.
        """
        items = self._sorted(polled.items)
        self._check(items.fresh, polled)
        started = 0
        for fresh, ageing, last in _batches(items):
            with transaction.atomic():
                self._hold.renew()
                runs = self._start(fresh)
                for name, version in ageing:
                    self._store.renew(name, version, self._trigger.seen_ttl)
                started += len(runs)
                self._note(runs, self._moved(polled, started) if last else {})
                point("poll.batch")
            point("poll.batch_written")
        point("poll.moved")
        return started

    def _sorted(self, items: Sequence[Item]) -> _Sorted:
        """Read outside any transaction: an answer without news costs one small one."""
        named: dict[str, Item] = {}
        for item in items:
            named.setdefault(SEEN + hashlib.sha256(item.key.encode()).hexdigest(), item)
        # An item that stays in every answer must stay known: what is half over is given a lifetime from now on.
        half = db_now() + timedelta(seconds=self._trigger.seen_ttl / 2)
        found = _Sorted(fresh=[], ageing=[])
        names = list(named)
        for start in range(0, len(names), BATCH):
            part = names[start : start + BATCH]
            known = self._store.several(part)
            found.fresh.extend((name, named[name]) for name in part if name not in known)
            found.ageing.extend(
                (name, entry.version)
                for name, entry in known.items()
                if entry.expires_at is not None and entry.expires_at < half
            )
        return found

    def _check(self, fresh: Sequence[tuple[str, Item]], polled: Polled) -> None:
        for _, item in fresh:
            try:
                check_input(jsontext.dumps(item.value))
            except (Invalid, TooLarge) as problem:
                raise PollFailed(f"items[{item.index}]: {problem.message}") from problem
        if polled.cursor is not NOTHING:
            try:
                encode(POSITION, polled.cursor)
            except StateStoreError as problem:
                raise PollFailed(f'what "cursor" came to cannot be kept: {problem}') from problem

    def _start(self, fresh: Sequence[tuple[str, Item]]) -> list[Run]:
        names = iter([name for name, _ in fresh])

        def take(run: Run) -> bool:
            return self._store.put_if_absent(next(names), {"run": str(run.uuid)}, self._trigger.seen_ttl)

        actor = starter(self._file.agent_id)
        values = [item.value for _, item in fresh]
        return start_runs(self._file, values, actor=actor, take=take, workspace=self._workspace)

    def _moved(self, polled: Polled, started: int) -> dict[str, Any]:
        """The end of the poll, in the transaction of its last batch: the position too."""
        if polled.cursor is not NOTHING and not jsontext.same(polled.cursor, self.position):
            self._store.put(POSITION, polled.cursor)
        return {
            # From the end of this poll on: a slow one is not due again before it is over.
            "due_at": DbNow(self._trigger.every),
            "retry_at": None,
            "lease_until": None,
            "last_due_at": self._hold.row.due_at,
            "fired_at": DbNow(),
            "items": len(polled.items),
            "new_items": started,
            "failures": 0,
            "error": "",
        }

    def _note(self, runs: Sequence[Run], changes: dict[str, Any]) -> None:
        if runs:
            changes = {"started": F("started") + len(runs), "last_run": runs[-1], **changes}
        if changes:
            self._hold.mine.update(**changes)


def _batches(items: _Sorted) -> Iterator[tuple[list[tuple[str, Item]], list[tuple[str, int]], bool]]:
    """What goes in one transaction each, and whether it is the last one; at least one."""
    sizes = (len(items.fresh), len(items.ageing))
    for start in range(0, max(1, *sizes), BATCH):
        end = start + BATCH
        yield items.fresh[start:end], items.ageing[start:end], end >= max(sizes)
