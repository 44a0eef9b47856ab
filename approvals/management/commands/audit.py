"""`audit`: prove that the entries are whole, or hand them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from approvals import audit, receipts
from approvals.models import AuditEntry, AuditSeal
from workflows.engine import jsontext
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, REFUSED, UsageError
from workflows.models import WORKSPACE


class Command(AnsweringCommand):
    help = "Check the chain of audit entries, write all of them as JSON Lines, or the receipt of one request."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="verb", required=True, metavar="verify | export | receipt")
        verify = acts.add_parser(
            "verify", help="recompute every hash and link; exit 2 at the first bad one", allow_abbrev=False
        )
        verify.add_argument("--receipt", metavar="FILE", help="check this receipt instead; no database is asked")
        verify.add_argument(
            "--head", metavar="NO:HASH", help="a seal that was noted: the receipt has to lead through it"
        )
        acts.add_parser("export", help="one entry a line on stdout, the oldest first", allow_abbrev=False)
        receipt = acts.add_parser(
            "receipt",
            help="all that was done with one request, in a form that can be checked offline",
            allow_abbrev=False,
        )
        receipt.add_argument("key", metavar="KEY")

    def perform(self, **options: Any) -> int:
        match options["verb"]:
            case "export":
                return self._export()
            case "receipt":
                return self._receipt(options["key"])
        if options["receipt"]:
            return self._check(Path(options["receipt"]), _noted(options["head"]))
        if options["head"]:
            raise UsageError("--head belongs to --receipt FILE")
        return self._verify()

    def _verify(self) -> int:
        code = DONE
        for workspace in _workspaces():
            report = audit.verify(workspace)
            if report.first_bad is not None:
                self.say(f"{workspace}: {report.first_bad}")
                code = REFUSED
                continue
            line = f"{workspace}: {report.sealed} entries are sealed, and every link holds."
            if report.unsealed:
                line += f" {report.unsealed} not sealed yet: a worker seals every few seconds, and so does `sweep`."
            self.show(line)
            if report.sealed:
                self.show(f"{workspace}: the last seal is {report.sealed}:{report.head}")
        return code

    def _check(self, file: Path, head: tuple[int, str] | None) -> int:
        try:
            found = jsontext.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            self.say(f"{file}: cannot be read: {error}")
            return REFUSED
        fault = receipts.fault(found, head)
        if fault is not None:
            self.say(f"{file}: {fault}")
            return REFUSED
        number, seal = found["head"]["no"], found["head"]["hash"]
        self.show(f"{file}: all {len(found['entries'])} entries of {found['key']} hold, up to the seal {number}:{seal}")
        if head is None:
            self.show("Compare that seal with one that you noted: `audit verify` prints the last one.")
        return DONE

    def _receipt(self, key: str) -> int:
        while audit.seal():
            continue
        self.show(jsontext.dumps_pretty(receipts.receipt(key)))
        return DONE

    def _export(self) -> int:
        for entry in AuditEntry.objects.order_by("id").iterator():
            if not self.show(jsontext.dumps(receipts.line_of(entry))):
                break
        return DONE


def _noted(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    number, _, link = text.partition(":")
    if not (number.isascii() and number.isdigit() and len(number) < 19 and link):
        raise UsageError("--head: the number and the hash of a seal, as `audit verify` prints them: NO:HASH")
    return int(number), link


def _workspaces() -> list[str]:
    """Every workspace that has entries or ever sealed one, the default one in any case."""
    named = set(AuditEntry.objects.order_by().values_list("workspace", flat=True).distinct())
    return sorted(named | set(AuditSeal.objects.values_list("workspace", flat=True)) | {WORKSPACE})
