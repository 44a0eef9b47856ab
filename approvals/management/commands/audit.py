"""`audit`: prove that the entries are whole, or hand them out."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from approvals import audit
from approvals.models import AuditEntry, AuditSeal
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, REFUSED
from workflows.models import WORKSPACE
from workflows.times import rfc3339


class Command(AnsweringCommand):
    help = "Check the chain of audit entries, or write all of them as JSON Lines."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="verb", required=True, metavar="verify | export")
        acts.add_parser("verify", help="recompute every hash and link; exit 2 at the first bad one", allow_abbrev=False)
        acts.add_parser("export", help="one entry a line on stdout, the oldest first", allow_abbrev=False)

    def perform(self, **options: Any) -> int:
        return self._verify() if options["verb"] == "verify" else self._export()

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
        return code

    def _export(self) -> int:
        for entry in AuditEntry.objects.order_by("id").iterator():
            if not self.show(jsontext.dumps(_line(entry))):
                break
        return DONE


def _workspaces() -> list[str]:
    """Every workspace that has entries or ever sealed one, the default one in any case."""
    named = set(AuditEntry.objects.order_by().values_list("workspace", flat=True).distinct())
    return sorted(named | set(AuditSeal.objects.values_list("workspace", flat=True)) | {WORKSPACE})


def _line(entry: AuditEntry) -> dict[str, Json]:
    """Everything that the hashes are over, and the hashes; `at_exact` is the time as it is hashed."""
    content: dict[str, Json] = {"id": entry.pk, "at": rfc3339(entry.at)}
    content |= {name: getattr(entry, name) for name in audit.CONTENT}
    return content | {
        "at_exact": entry.at.isoformat(timespec="microseconds"),
        "own_hash": entry.own_hash,
        "seal_no": entry.seal_no,
        "previous": entry.previous,
        "sealed_hash": entry.sealed_hash,
    }
