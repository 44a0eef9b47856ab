"""The audit, votes that came too late, and notices that did not leave."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db.models import F, Q

from approvals import audit
from approvals.models import ApprovalRequest, AuditEntry, AuditSeal, Notice, NoticeStatus, RequestStatus, Vote
from approvals.repair.cases import case_of, lock_request, note
from statestore.clock import DbNow
from workflows.repair.findings import BEHIND_SECONDS, By, Check, Finding, Scope, need
from workflows.repair.words import how_long, late, workers

#: Of the end of each chain; `--all` reads all of it, as `audit verify` does.
_LAST_LINKS = 1000
#: Two machines' clocks may be a minute apart.
_APART = timedelta(minutes=5)


def _once(scope: Scope) -> tuple[str]:
    return ("",)


# The chain of the audit ----------------------------------------------------------------------------------------


def _unsealed(suspect: str) -> Finding | None:
    oldest = AuditEntry.objects.filter(seal_no__isnull=True).order_by("id").first()
    if oldest is None or not late(oldest.at, BEHIND_SECONDS):
        return None

    def seal(by: By) -> None:
        need(1 if audit.seal() else 0)

    return Finding(
        code="audit_unsealed",
        subject="the audit",
        since=oldest.at,
        what=f"{AuditEntry.objects.filter(seal_no__isnull=True).count()} entries are not sealed, the oldest for "
        f"{how_long(oldest.at)}",
        means="a change to them would show in the entry alone, not in the chain; workers seal every few seconds; "
        f"{workers()}",
        fix="seals them, as `sweep` does",
        mend=seal,
    )


def _chains(scope: Scope) -> Iterator[tuple[str, str]]:
    """Each workspace whose chain does not hold, with what is wrong. Read here: it may take long."""
    for workspace in AuditSeal.objects.order_by("workspace").values_list("workspace", flat=True):
        bad = audit.verify(workspace).first_bad if scope.everything else _fault_at_the_end(workspace)
        if bad is not None:
            yield workspace, bad


def _fault_at_the_end(workspace: str) -> str | None:
    """What is wrong with the last links, up to the one that was sealed last when this began."""
    head = AuditSeal.objects.get(workspace=workspace)
    number = max(0, head.last_no - _LAST_LINKS)
    links = AuditEntry.objects.filter(workspace=workspace, seal_no__gt=number, seal_no__lte=head.last_no)
    before: str | None = None if number else ""
    for entry in links.order_by("seal_no").iterator():
        number += 1
        if entry.seal_no != number:
            return f"entry {number} is missing"
        whole = entry.sealed_hash == audit.sealed_hash(number, entry.previous, audit.own_hash(entry))
        if not whole or entry.previous != (entry.previous if before is None else before):
            return f"entry {number}: its content or its link does not match"
        before = entry.sealed_hash
    if number != head.last_no or before != head.last_hash:
        return f"the chain ends at entry {number}, and {head.last_no} were sealed"
    return None


def _judge_chain(suspect: tuple[str, str]) -> Finding | None:
    workspace, bad = suspect
    return Finding(
        code="audit_broken",
        subject=f"the audit of workspace {workspace}",
        what=bad,
        means="entries were changed or removed outside Kampong; what they say is no proof from there on",
        move="run `audit verify`, compare the seals that you noted, and keep a copy of the database as it is now",
    )


# Votes ---------------------------------------------------------------------------------------------------------


def _late_votes(request: int) -> Any:
    return Vote.objects.filter(request=request, at__gt=F("request__closed_at") + _APART)


def _voted(scope: Scope) -> Iterator[int]:
    is_open = Q(status=RequestStatus.OPEN)
    for page in scope.pages(ApprovalRequest.objects, is_open, "votes"):
        late_ones = Vote.objects.filter(request__in=page, at__gt=F("request__closed_at") + _APART)
        yield from sorted(set(late_ones.order_by().values_list("request", flat=True)))


def _judge_votes(pk: int) -> Finding | None:
    vote = _late_votes(pk).order_by("at").first()
    request = ApprovalRequest.objects.select_related("run").filter(pk=pk).first()
    if vote is None or request is None:
        return None
    case = case_of(request)

    def remove(by: By) -> None:
        need(1 if _late_votes(pk).delete()[0] else 0)
        note(case, by, f"{vote.label} had a vote on it that was given after its end and never counted")

    return Finding(
        code="vote_after_end",
        since=vote.at,
        what=f"it was over ({request.status}) when {vote.label} voted on it",
        means="the vote never counted; its proof shows it among those that did",
        fix="removes the vote and writes down in the audit whose it was",
        mend=remove,
        **case.facts,
    )


# Notices -------------------------------------------------------------------------------------------------------


def _unsent() -> Any:
    free = Q(held_until__isnull=True) | Q(held_until__lte=DbNow())
    return Notice.objects.filter(free, status=NoticeStatus.WAITING, due_at__lt=DbNow(-BEHIND_SECONDS))


def _overdue(suspect: str) -> Finding | None:
    oldest = _unsent().order_by("due_at").first()
    if oldest is None:
        return None
    return Finding(
        code="notices_overdue",
        subject=f"{_unsent().count()} notices",
        since=oldest.due_at,
        what=f"they have been due for up to {how_long(oldest.due_at)}, and no sender has them",
        means=f"people are not told that something waits for them, or what became of it; {workers()}",
        move="start `serve` or `worker`, or run `sweep`; a sender that died keeps none for longer than a minute",
    )


def _given_up() -> Any:
    """What should have told somebody of a request that still waits."""
    telling = Notice.objects.filter(status=NoticeStatus.FAILED, request__status=RequestStatus.OPEN)
    return telling.filter(about__in=("opened", "reminder", "escalated", "handed"))


def _failed(suspect: str) -> Finding | None:
    last = _given_up().order_by("-due_at").first()
    if last is None:
        return None
    return Finding(
        code="notices_failed",
        subject=f"{_given_up().count()} notices",
        since=_given_up().order_by("due_at").values_list("due_at", flat=True).first(),
        what=f"they were given up, the last one by {last.channel}: {last.error}",
        means="their requests wait in the queue, and who was to be told of them was not",
        move="mend the cause, then let them be tried again (admin, Notices); or decide the requests",
    )


CHECKS = (
    Check(name="sealing", codes=("audit_unsealed",), suspects=_once, judge=_unsealed),
    Check(name="audit", codes=("audit_broken",), suspects=_chains, judge=_judge_chain),
    Check(name="votes", codes=("vote_after_end",), suspects=_voted, judge=_judge_votes, lock=lock_request),
    Check(name="notices that wait", codes=("notices_overdue",), suspects=_once, judge=_overdue),
    Check(name="notices given up", codes=("notices_failed",), suspects=_once, judge=_failed),
)
