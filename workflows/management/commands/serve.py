"""`serve`: web, workers, recovery and scheduler in one process."""

from __future__ import annotations

from pathlib import Path
from socket import socket
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from approvals import addresses
from statestore.conf import value as setting
from workflows import specwatch
from workflows.management.base import BAD_SPEC, DONE, KampongCommand, Stop, UsageError
from workflows.management.ending import Ending
from workflows.management.metricsport import metrics_port
from workflows.management.migrating import migrate, require_migrated
from workflows.management.terminal import warning_of
from workflows.management.web import WebServer, address_of, listen
from workflows.registry import BrokenFile, Registry, read_spec, registry
from workflows.triggers.scheduler import Scheduler
from workflows.worker import WorkerPool


class Command(KampongCommand):
    help = "Serve specs: the web interface, the workers, the recovery and the scheduler, in one process."
    pooled = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "specs", nargs="*", metavar="SPEC or DIR", help="spec files and folders, besides KAMPONG_SPECS"
        )
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, default=8080, help="port to listen on (default: %(default)s)")
        parser.add_argument("--workers", type=int, help="worker threads (default: KAMPONG_WORKERS)")
        parser.add_argument(
            "--web-only", action="store_true", help="no workers and no scheduler here; run `worker` and `scheduler`"
        )
        parser.add_argument("--no-migrate", action="store_true", help="leave the database's tables as they are")

    @metrics_port()
    def act(self, **options: Any) -> int:
        _check_usage(options)
        broken = serve_specs(options["specs"])
        listener = listen(options["host"], options["port"])
        try:
            if options["no_migrate"]:
                require_migrated()
            else:
                migrate()
            addresses.listening_at(address_of(listener, options["host"]))
            self.check(databases=["default"])
            pool = None if options["web_only"] else WorkerPool(options["workers"])
            scheduler = None if options["web_only"] else Scheduler()
            return self._run(listener, options["host"], pool, scheduler, broken)
        finally:
            listener.close()

    def _run(
        self,
        listener: socket,
        host: str,
        pool: WorkerPool | None,
        scheduler: Scheduler | None,
        broken: list[BrokenFile],
    ) -> int:
        drain = setting("KAMPONG_DRAIN_SECONDS")
        server = WebServer(drain)

        def asked() -> None:
            server.should_exit = True
            for part in (pool, scheduler):
                if part is not None:
                    part.stop_taking()

        ending = Ending(asked, drain)
        ending.install()
        self._announce(address_of(listener, host), broken)
        if pool is None:
            specwatch.loop().start()
        for part in (pool, scheduler):
            if part is not None:
                part.start()
        server.run(sockets=[listener])
        if scheduler is not None:
            scheduler.stop(ending.seconds_left())
        if pool is not None:
            report_unfinished(self, pool.stop(ending.seconds_left()))
        self.show("Stopped.")
        return DONE

    def _announce(self, address: str, broken: list[BrokenFile]) -> None:
        served = registry().files()
        below = address + (settings.FORCE_SCRIPT_NAME or "")
        self.show(f"Kampong runs at {below}/ (admin: {below}/admin/)")
        for file in served:
            self.show(f"  {file.agent_id}: {file.path}")
            for note in file.notes:
                self.say(f"  {warning_of(file.path, note)}")
        if not served:
            self.show("  No specs are served. Name files or folders, or set KAMPONG_SPECS.")
        for refused in broken:
            self.say(f"  not served: {refused.path}: {refused.message}")
        self.show("Ctrl-C ends it.")


def _check_usage(options: dict[str, Any]) -> None:
    if not 0 <= options["port"] <= 65535:
        raise UsageError("--port is a number from 0 to 65535; 0 takes a free one")
    if options["workers"] is not None and options["workers"] < 1:
        raise UsageError("--workers is a number from 1; use --web-only for none")


def serve_specs(given: list[str]) -> list[BrokenFile]:
    """Serve these besides KAMPONG_SPECS; the files that cannot be served.

    A file that is named and does not load is refused (SpecUnreadable), and so is a folder that is not there. A broken
    file in a folder, or in KAMPONG_SPECS, is named and does not keep the others from being served.
    """
    named = [Path(name).absolute() for name in given]
    for path in named:
        if not path.is_dir():
            read_spec(path)
    broken = Registry(lambda: [*setting("KAMPONG_SPECS"), *map(str, named)]).broken()
    refused = [file for file in broken if file.path in named]
    if refused:
        raise Stop("\n".join(f"{file.path}: {file.message}" for file in refused), code=BAD_SPEC)
    registry().serve(named)
    return broken


def report_unfinished(command: KampongCommand, run_ids: tuple[str, ...]) -> None:
    """Say which runs the drain was too short for."""
    for run_id in run_ids:
        command.say(f"Run {run_id} was still working; another worker takes it up or interrupts it when its lease ends.")
