"""`recover`: one pass over lost workers and forgotten messages."""

from __future__ import annotations

from typing import Any

from workflows.management.base import DONE, KampongCommand
from workflows.models import Run
from workflows.recovery import recover

WORDS = {
    "resent": "sent again to the queue",
    "requeued": "its worker was lost; queued again",
    "interrupted": "its worker was lost; interrupted (see `runs show`, then `runs retry` or `runs give_up`)",
}


class Command(KampongCommand):
    help = "Queue again runs that lost their worker or message; interrupt those whose call has an unknown fate."

    def act(self, **options: Any) -> int:
        def tell(run: Run, act: str) -> None:
            self.show(f"{run.uuid} {run.agent_id}: {WORDS[act]}")

        done = recover(tell)
        if not (done.resent or done.requeued or done.interrupted):
            self.show("Nothing to recover.")
        return DONE
