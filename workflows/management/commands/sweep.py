"""`sweep`: every chore of housekeeping once, until nothing is left."""

from __future__ import annotations

from typing import Any

from workflows import housekeeping
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, REFUSED
from workflows.management.migrating import require_migrated

#: A chore does a bounded part in each pass. More passes than this means that it never comes to an end.
MOST_PASSES = 10_000


class Command(AnsweringCommand):
    help = "Do once what the workers do all the time: expire approvals, seal the audit, purge expired entries."

    def perform(self, **options: Any) -> int:
        require_migrated()
        code = DONE
        for chore in housekeeping.chores():
            done, finished = _finish(chore)
            self.show(f"{chore.name}: {done}")
            if not finished:
                self.say(f"{chore.name}: there is still more to do; run sweep again")
                code = REFUSED
        return code


def _finish(chore: housekeeping.Chore) -> tuple[int, bool]:
    """How many things the chore did in all, and whether nothing is left."""
    done = 0
    for _ in range(MOST_PASSES):
        part = chore.run()
        if part <= 0:
            return done, True
        done += part
    return done, False
