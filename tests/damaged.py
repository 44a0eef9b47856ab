"""What the tests of `queue_doctor` share: a look, a mend, and that afterwards nothing is wrong."""

from __future__ import annotations

from typing import Any

from approvals.models import ApprovalRequest, AuditEntry
from statestore.clock import now
from statestore.models import StateRecord
from workflows.actors import Actor
from workflows.models import Attempt, Run, Status
from workflows.repair.examination import examine
from workflows.repair.findings import By, Finding, Scope

BY = By(actor=Actor(label="operator", surface="cli"), reason="after the crash")
EVERYTHING = Scope(everything=True)


def found(scope: Scope = Scope()) -> list[Finding]:  # noqa: B008  (it is frozen)
    """What is wrong."""
    return examine(scope).left


def codes(findings: list[Finding]) -> list[str]:
    return [one.code for one in findings]


def the_one(code: str) -> Finding:
    """The one finding of a look at everything, told with all that people need; mends look at what is recent."""
    (finding,) = found(EVERYTHING)
    assert finding.code == code
    assert finding.subject
    assert finding.what
    assert finding.means
    return finding


def mend(*expected: str) -> list[Finding]:
    """Exactly these are mended, in this order, and the look after the last of them finds nothing."""
    done = examine(Scope(), BY)
    assert (codes(done.mended), done.left) == (list(expected), [])
    return done.mended


def mended(code: str, *more: str, noted: int | None = None) -> Finding:
    """It is the one thing wrong; mending it, and what comes to light then, leaves nothing."""
    finding = the_one(code)
    before = AuditEntry.objects.filter(act="repair").count()
    mend(code, *more)
    notes = AuditEntry.objects.filter(act="repair").order_by("id")[before:]
    assert all(one.actor == "operator" and "after the crash" in one.reason for one in notes)
    if noted is not None:
        assert len(notes) == noted
    return finding


def status_of(run: Run) -> Status:
    run.refresh_from_db()
    return Status(run.status)


# Damage --------------------------------------------------------------------------------------------------------


def change(run: Run, **columns: Any) -> Run:
    """Other columns in the run's row."""
    assert Run.objects.filter(pk=run.pk).update(**columns) == 1
    run.refresh_from_db()
    return run


def attempt(run: Run, **columns: Any) -> Attempt:
    """A call that was begun, open unless the columns say otherwise."""
    given = {"run": run, "step_index": 1, "step": "pay", "n": 7, "kind": "tool", "name": "pay", "started_at": now()}
    return Attempt.objects.create(**given | columns)


def record(key: str) -> Any:
    """The row of the record."""
    return StateRecord.objects.filter(key=f"approval:{key}")


def request(key: str) -> ApprovalRequest:
    return ApprovalRequest.objects.get(key=key)


def change_request(key: str, **columns: Any) -> None:
    """Other columns in the request's row."""
    assert ApprovalRequest.objects.filter(key=key).update(**columns) == 1
