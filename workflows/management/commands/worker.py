"""`worker`: the worker threads and the recovery without the web."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandParser

from statestore.conf import value as setting
from workflows.management.base import DONE, KampongCommand, UsageError
from workflows.management.commands.serve import report_unfinished
from workflows.management.ending import Ending
from workflows.management.metricsport import metrics_port
from workflows.management.migrating import require_migrated
from workflows.worker import WorkerPool


class Command(KampongCommand):
    help = "Work on runs: worker threads, recovery and housekeeping, until SIGTERM or Ctrl-C."
    pooled = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workers", type=int, help="worker threads (default: KAMPONG_WORKERS)")

    @metrics_port()
    def act(self, **options: Any) -> int:
        if options["workers"] is not None and options["workers"] < 1:
            raise UsageError("--workers is a number from 1")
        require_migrated()
        self.check(databases=["default"])
        drain = setting("KAMPONG_DRAIN_SECONDS")
        pool = WorkerPool(options["workers"])
        ending = Ending(pool.stop_taking, drain)
        ending.install()
        pool.start()
        self.show("Working. Ctrl-C ends it.")
        while not ending.asked:
            time.sleep(0.1)
        report_unfinished(self, pool.stop(ending.seconds_left()))
        self.show("Stopped.")
        return DONE
