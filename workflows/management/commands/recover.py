"""`recover`: one pass over lost workers and forgotten messages."""

from __future__ import annotations

from typing import Any

from workflows.management.base import DONE, KampongCommand
from workflows.recovery import recover


class Command(KampongCommand):
    help = "Queue again runs that lost their worker or message; interrupt those whose call has an unknown fate."

    def act(self, **options: Any) -> int:
        done = recover()
        for number, what in (
            (done.resent, "sent again to the queue"),
            (done.requeued, "taken from a lost worker and queued again"),
            (done.interrupted, "interrupted: the worker was lost; see `runs show`, then retry or give up"),
        ):
            if number:
                self.show(f"{number} {'run' if number == 1 else 'runs'} {what}")
        if not (done.resent or done.requeued or done.interrupted):
            self.show("Nothing to recover.")
        return DONE
