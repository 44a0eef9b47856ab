"""`queue_doctor`: cross-check what changes together, explain each mismatch, mend the safe ones (design 5.1)."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from django.core.management.base import CommandParser

from workflows.engine.values import Json
from workflows.management.acting import OPERATE, add_as, allowed
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, REFUSED, UsageError
from workflows.management.migrating import require_migrated
from workflows.management.terminal import one_line
from workflows.repair.examination import examine
from workflows.repair.findings import By, Finding, Scope
from workflows.repair.words import how_long
from workflows.times import rfc3339

#: A look that takes longer says where it is, about so often.
_TOLD_SECONDS = 3.0
#: Of many findings of one kind so many are told in words; `--json` has all.
_MOST_TOLD = 20


class Command(AnsweringCommand):
    help = "Cross-check runs, requests, records, decisions, leases, calls and messages; --fix mends what is safe."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--fix", action="store_true", help="mend what can be mended safely, also while workers work"
        )
        parser.add_argument(
            "--all", action="store_true", help="look at every row, not only at what is active or recent"
        )
        parser.add_argument("--reason", default="", metavar="TEXT", help="why you mend; kept in the audit")
        parser.add_argument("--json", action="store_true", help="exactly one JSON object on stdout")
        add_as(parser)

    def perform(self, **options: Any) -> int:
        fix, as_json = options["fix"], options["json"]
        if options["reason"] and not fix:
            raise UsageError("--reason belongs to --fix")
        require_migrated()
        by = By(actor=allowed(options["as_user"], OPERATE), reason=options["reason"].strip()) if fix else None

        def tell(mended: Finding) -> None:
            if not as_json:
                self.show(f"mended  {mended.code}  {one_line(f'{mended.subject}: {mended.what}; it {mended.fix}')}")

        examined = examine(Scope(everything=options["all"], tell=_Progress(self).page), by, tell)
        code = REFUSED if examined.left else DONE
        if as_json:
            told = [_object(one, "mended") for one in examined.mended] + [
                _object(one, "found") for one in examined.left
            ]
            self.answer({"success": not examined.left, "findings": told})
            return code
        counted: Counter[str] = Counter()
        for finding in examined.left:
            counted[finding.code] += 1
            if counted[finding.code] <= _MOST_TOLD:
                self.show_lines(_lines(finding))
        for kind, count in counted.items():
            if count > _MOST_TOLD:
                self.show(f"{kind}: {count - _MOST_TOLD} more like this; --json lists them all")
        self.show(_verdict(examined.mended, examined.left, fixed=fix))
        return code


class _Progress:
    """Says on stderr where a long look is."""

    def __init__(self, command: AnsweringCommand) -> None:
        self._command = command
        self._told_at = time.monotonic()

    def page(self, name: str, done: int) -> None:
        if time.monotonic() - self._told_at >= _TOLD_SECONDS:
            self._told_at = time.monotonic()
            self._command.say(f"{name}: {done} looked at ...")


def _lines(finding: Finding) -> list[str]:
    since = f", for {how_long(finding.since)}" if finding.since is not None else ""
    move = ("--fix", finding.fix) if finding.fix else ("to do", finding.move)
    told = (("wrong", finding.what), ("means", finding.means), move)
    return [
        f"{finding.code}  {one_line(finding.subject)}{since}",
        *(f"    {head}   {one_line(words)}" for head, words in told),
    ]


def _verdict(mended: list[Finding], left: list[Finding], *, fixed: bool) -> str:
    did = f"{len(mended)} mended. " if mended else ""
    if not left:
        return did + ("Nothing is wrong any more." if mended else "Nothing is wrong.")
    safe = sum(bool(one.fix) for one in left)
    parts = [f"{safe} changed meanwhile, look again" if fixed else f"--fix mends {safe}"] if safe else []
    if len(left) > safe:
        parts.append(f"{len(left) - safe} left for an operator")
    return f"{did}{len(left)} {'mismatch' if len(left) == 1 else 'mismatches'}: {', '.join(parts)}."


def _object(finding: Finding, state: str) -> dict[str, Json]:
    told: dict[str, Json] = {
        "code": finding.code,
        "state": state,
        "subject": finding.subject,
        "what": finding.what,
        "means": finding.means,
    }
    if finding.run:
        told["run"] = finding.run
    if finding.since is not None:
        told["since"] = rfc3339(finding.since)
    told["fix" if finding.fix else "move"] = finding.fix or finding.move
    return told
