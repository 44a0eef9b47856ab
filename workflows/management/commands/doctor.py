"""`doctor`: what would stop a run of a spec, before it runs (engine semantics 17.5)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from workflows.adapters import fixtures
from workflows.doctor.checks import examine
from workflows.doctor.contacts import online, probe
from workflows.doctor.findings import Check, Patient, failed
from workflows.engine.values import Json
from workflows.management.answers import AnsweringCommand
from workflows.management.base import BAD_SPEC, DONE, REFUSED
from workflows.management.terminal import one_line
from workflows.registry import SpecUnreadable, read_spec


class Command(AnsweringCommand):
    help = "Say what would stop a run of a spec, before it runs. Contacts nothing without --online or --probe."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("spec", metavar="SPEC", help="the spec's file")
        parser.add_argument("--json", action="store_true", help="exactly one JSON object on stdout")
        parser.add_argument("--tools", choices=fixtures.MODES, default="live", help="how tools would be called")
        parser.add_argument("--fixtures", metavar="DIR", help="folder of recorded calls")
        parser.add_argument("--online", action="store_true", help="connect to every host, and send no request")
        parser.add_argument("--probe", action="store_true", help="ask the model's provider, and Slack, about the key")

    def perform(self, **options: Any) -> int:
        path = Path(options["spec"]).absolute()
        try:
            file = read_spec(path)
        except SpecUnreadable as refusal:
            checks = [failed("spec", f"{path}: {error}") for error in refusal.errors]
            self._tell(checks, options["json"])
            return BAD_SPEC
        patient = Patient(
            spec=file.spec,
            notes=file.notes,
            environ=dict(os.environ),
            mode=options["tools"],
            fixtures=Path(options["fixtures"]).absolute() if options["fixtures"] else path.parent / fixtures.DEFAULT,
        )
        checks = examine(patient)
        checks += online(patient) if options["online"] else ()
        checks += probe(patient) if options["probe"] else ()
        self._tell(checks, options["json"])
        return DONE if _ok(checks) else REFUSED

    def _tell(self, checks: list[Check], as_json: bool) -> None:
        if as_json:
            self.answer({"ok": _ok(checks), "checks": [_object(check) for check in checks]})
            return
        self.show_lines([one_line(f"{check.status}  {check.area}: {check.message}") for check in checks])
        counts = {status: sum(check.status == status for check in checks) for status in ("pass", "warn", "fail")}
        verdict = "Nothing here stops a run." if _ok(checks) else "Something here stops a run."
        self.show(f"{verdict} {counts['pass']} passed, {counts['warn']} to look at, {counts['fail']} failed")


def _ok(checks: list[Check]) -> bool:
    return all(check.status != "fail" for check in checks)


def _object(check: Check) -> dict[str, Json]:
    return {"status": check.status, "area": check.area, "message": check.message}
