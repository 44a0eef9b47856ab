"""`scheduler`: the schedules, the polls and the housekeeping without the web and the workers."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandParser

from statestore.conf import value as setting
from workflows.management.base import DONE, KampongCommand
from workflows.management.commands.serve import serve_specs
from workflows.management.ending import Ending
from workflows.management.metricsport import metrics_port
from workflows.management.migrating import require_migrated
from workflows.registry import registry
from workflows.triggers.scheduler import Scheduler
from workflows.triggers.state import timed


class Command(KampongCommand):
    help = "Start what is due by schedules and polls, and keep house, until SIGTERM or Ctrl-C."
    pooled = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "specs", nargs="*", metavar="SPEC or DIR", help="spec files and folders, besides KAMPONG_SPECS"
        )

    @metrics_port()
    def act(self, **options: Any) -> int:
        broken = serve_specs(options["specs"])
        require_migrated()
        self.check(databases=["default"])
        drain = setting("KAMPONG_DRAIN_SECONDS")
        scheduler = Scheduler(keeps_house=True)
        ending = Ending(scheduler.stop_taking, drain)
        ending.install()
        for file in registry().files():
            if (trigger := timed(file)) is not None:
                self.show(f"  {file.agent_id}: {trigger.type}, {file.path}")
        for refused in broken:
            self.say(f"  not served: {refused.path}: {refused.message}")
        scheduler.start()
        self.show("Scheduling. Ctrl-C ends it.")
        while not ending.asked:
            time.sleep(0.1)
        scheduler.stop(ending.seconds_left())
        self.show("Stopped.")
        return DONE
