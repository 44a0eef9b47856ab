"""What time alone brings about while a request waits: reminders, and more people who may decide (spec 1.2)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from approvals import audit, eligible
from approvals.models import ApprovalRequest, RequestStatus
from approvals.notices.outbox import tell
from approvals.policy import Verdict, policy_of
from approvals.services import proof
from statestore.clock import DbNow, now
from statestore.faults import point
from workflows.actors import system
from workflows.engine import jsontext


def remind_due(limit: int = 200) -> int:
    """Remind those who may decide of what has waited for `remind_every` again; how many requests this call did.

    One reminder a request, however many processes sweep, and one after a downtime for all that were missed.
    """
    return sum(_remind(request) for request in _waiting(remind_at__lte=DbNow()).order_by("remind_at", "id")[:limit])


def escalate_due(limit: int = 200) -> int:
    """Tell the groups of `escalate` that they may decide too, once a request; how many this call did.

    The policy asks the clock itself: they may from that moment on, whether anybody swept or not.
    """
    due = _waiting(escalate_at__lte=DbNow(), escalated_at__isnull=True)
    return sum(_escalate(request) for request in due.order_by("escalate_at", "id")[:limit])


def _waiting(**due: Any) -> Any:
    """Requests that can still be decided."""
    waiting = ApprovalRequest.objects.filter(status=RequestStatus.OPEN, expires_at__gt=DbNow(), **due)
    return waiting.select_related("run")


def _remind(request: ApprovalRequest) -> bool:
    every, due = policy_of(request).remind_every, request.remind_at
    if every is None or due is None:
        ApprovalRequest.objects.filter(pk=request.pk).update(remind_at=None)
        return False
    users = sorted(eligible.deciders(request))
    point("remind.asked")
    with transaction.atomic():
        # The time that was read is the ticket: whoever moves it first reminds.
        if _waiting(pk=request.pk, remind_at=due).update(remind_at=_next(due, every)) != 1:
            return False
        tell(request, "reminder", users=users)
    return True


def _next(due: datetime, every: int) -> datetime:
    """The first time after now that is a whole number of `every` seconds after `due`."""
    missed = (now() - due) // timedelta(seconds=every)
    return due + timedelta(seconds=every) * (max(missed, 0) + 1)


def _escalate(request: ApprovalRequest) -> bool:
    held = policy_of(request)
    if held.escalate is None:
        ApprovalRequest.objects.filter(pk=request.pk).update(escalate_at=None)
        return False
    groups = held.escalate.groups
    doubt = eligible.doubt(held, request.run, escalated=True)
    users = sorted(eligible.deciders(request) & eligible.members(groups))
    point("escalate.asked")
    with transaction.atomic():
        won = _waiting(pk=request.pk, escalated_at__isnull=True).update(
            escalated_at=DbNow(), doubt=doubt, revision=F("revision") + 1
        )
        if won != 1:
            return False
        audit.of_request(
            "escalate",
            request,
            actor=system("escalation"),
            policy=jsontext.dumps(proof(request, Verdict(allowed=True, rule=f"it waited for {held.escalate.after} s"))),
            details=jsontext.dumps({"groups": list(groups)}),
        )
        tell(request, "changed")
        tell(request, "escalated", users=users, groups=list(groups))
    return True
