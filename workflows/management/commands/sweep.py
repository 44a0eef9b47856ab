"""`sweep`: every chore of housekeeping once, until nothing is left."""

from __future__ import annotations

import time
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from statestore.errors import NotCompacted
from statestore.sqlite import vacuum
from workflows import housekeeping
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, REFUSED, Stop, UsageError
from workflows.management.migrating import require_migrated
from workflows.management.progress import Tally

#: A chore does a bounded part in each pass. More passes than this means that it never comes to an end.
MOST_PASSES = 100_000
_MIB = 1024 * 1024


class Command(AnsweringCommand):
    help = (
        "Do once what the workers do all the time: expire approvals, seal the audit, purge expired entries, end runs "
        "that are kept no longer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--vacuum", action="store_true", help="then give the space of what was deleted back to the disk (SQLite)"
        )
        parser.add_argument(
            "--vacuum-seconds",
            type=_seconds,
            metavar="SECONDS",
            help=f"how long others may be kept from writing for that (default {vacuum.SECONDS:g})",
        )

    def perform(self, **options: Any) -> int:
        if options["vacuum_seconds"] is not None and not options["vacuum"]:
            raise UsageError("--vacuum-seconds says how long --vacuum may take; give that as well")
        require_migrated()
        code = DONE
        for chore in housekeeping.chores():
            if chore.only_tells:
                continue
            done, finished = self._finish(chore)
            self.show(f"{chore.name}: {done}")
            if not finished:
                self.say(f"{chore.name}: there is still more to do; run sweep again")
                code = REFUSED
        if options["vacuum"]:
            self._vacuum(options["vacuum_seconds"] or vacuum.SECONDS)
        return code

    def _finish(self, chore: housekeeping.Chore) -> tuple[int, bool]:
        """How many things the chore did in all, and whether nothing is left."""
        with Tally(chore.name, self.stderr) as tally:
            for _ in range(MOST_PASSES):
                begun = time.monotonic()
                part = chore.run()
                if part <= 0:
                    return tally.done, True
                tally.add(part)
                if chore.is_full(part):
                    time.sleep(housekeeping.rest_after(time.monotonic() - begun))
        return tally.done, False

    def _vacuum(self, seconds: float) -> None:
        try:
            made = vacuum.compact(seconds)
        except NotCompacted as refusal:
            raise Stop(str(refusal), code=REFUSED) from refusal
        if made is None:
            self.show("vacuum: nothing to do, PostgreSQL uses the space again by itself (autovacuum)")
        else:
            self.show(f"vacuum: {made.before / _MIB:.1f} MiB before, {made.after / _MIB:.1f} MiB now")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0, at most a day")
    return seconds
