"""The round of the doctor: look, judge, and mend what can be mended, each case in a short transaction of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from django.db import DatabaseError, transaction

from workflows.repair.contributed import registered
from workflows.repair.findings import By, Check, Finding, Moved, Scope, Suspect, snapshot

logger = logging.getLogger("kampong.repair")

#: One mend can bring to light what it hid. More rounds than this mean that something makes damage as fast.
MOST_ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class Examined:
    """`left` is what is wrong now."""

    mended: list[Finding] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)


def examine(scope: Scope, by: By | None = None, tell: Callable[[Finding], None] = lambda mended: None) -> Examined:
    """Look at everything in the scope; with `by` mend what can be mended, until a round mends nothing more.

    Safe while the system works, and in several processes at once. `tell` hears of each mend after its commit.
    """
    mended: list[Finding] = []
    left: list[Finding] = []
    for _ in range(MOST_ROUNDS):
        left, before = [], len(mended)
        for check, suspect, finding in found(scope):
            if by is None or finding.mend is None:
                left.append(finding)
                continue
            present, done = _mended(check, suspect, by, finding)
            if present is None:
                continue  # It has gone by itself.
            if not done:
                left.append(present)
                continue
            mended.append(present)
            tell(present)
        if len(mended) == before:
            break
    return Examined(mended=mended, left=left)


def found(scope: Scope) -> Iterator[tuple[Check, Suspect, Finding]]:
    """Every mismatch, as it was seen in a snapshot of its own. What cannot be read is told and ends nothing else."""
    for check in registered():
        for suspect, problem in _suspects(check, scope):
            finding = _unreadable(check, problem) if problem is not None else _judged(check, suspect)
            if finding is not None:
                yield check, suspect, finding


def _suspects(check: Check, scope: Scope) -> Iterator[tuple[Suspect, Exception | None]]:
    """The suspects of a check, and at the end what kept it from naming the rest."""
    try:
        for suspect in check.suspects(scope):
            yield suspect, None
    except DatabaseError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever a damaged row does to those who read it)
        yield None, error


def _judged(check: Check, suspect: Suspect) -> Finding | None:
    try:
        with snapshot():
            return check.judge(suspect)
    except DatabaseError:
        raise
    except Exception as error:  # noqa: BLE001  (the same)
        return _unreadable(check, error, suspect)


def _unreadable(check: Check, error: Exception, suspect: Suspect = None) -> Finding:
    """Named by its row: what stands in it is somebody's data, and may be a secret."""
    row = suspect[0] if isinstance(suspect, tuple) else suspect
    subject = f"the check of {check.name}" + (f", row {row}" if row is not None else "")
    return Finding(
        code="unreadable",
        subject=subject,
        what=f"a value cannot be read ({type(error).__name__}): it was torn, or changed outside Kampong",
        means="whoever needs the row fails, and whether more is wrong with it, or behind it, is not known",
        move="restore the row out of a backup and look again",
    )


def _mended(check: Check, suspect: Suspect, by: By, seen: Finding) -> tuple[Finding | None, bool]:
    """What is wrong once the rows are locked, and whether it is mended: it can have changed, and a database can refuse.

    It is judged again inside the transaction that mends, or right before a mend that has one of its own.
    """
    finding: Finding | None = seen
    try:
        with transaction.atomic():
            check.lock(suspect)
            finding = check.judge(suspect)
            if finding is None or finding.mend is None:
                return finding, False
            if not finding.apart:
                finding.mend(by)
        if finding.apart:
            finding.mend(by)
    except Moved:
        return finding, False
    except DatabaseError as error:
        logger.warning("%s was not mended: %s", check.name, str(error).strip().partition("\n")[0])
        return finding, False
    return finding, True
