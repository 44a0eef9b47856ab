"""Everybody who could decide, asked from the request's side: for reminders, choices, and what nobody can satisfy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Q

from approvals.models import Absence, ApprovalRequest, Delegation
from approvals.people import holders
from approvals.policy import (
    counted_votes,
    escalated_to,
    persons,
    policy_of,
    same_eyes,
    standing_votes,
    starter_of,
    who,
)
from statestore.clock import DbNow
from workflows.models import Run
from workflows.spec.policy_model import Approvers, Policy
from workflows.visible import duration


def members(groups: tuple[str, ...]) -> set[int]:
    """The ids of those who are in one of these groups and hold the permission to decide."""
    return set(holders().filter(groups__name__in=groups).values_list("pk", flat=True))


def able(policy: Policy, starter: int | None = None, escalated: tuple[str, ...] = ()) -> set[int]:
    """The ids of all users who could approve now in their own name, a run that this user started."""
    approvers = policy.approvers
    users = holders()
    if approvers.users is not None or approvers.groups is not None:
        name = f"{get_user_model().USERNAME_FIELD}__in"
        groups = [*(approvers.groups or ()), *escalated]
        users = users.filter(Q(**{name: approvers.users or ()}) | Q(groups__name__in=groups))
    found = set(users.values_list("pk", flat=True))
    return found - {starter} if approvers.four_eyes else found


def deciders(request: ApprovalRequest) -> set[int]:
    """The ids of all users whose approval would bring this request forward now, stand-ins among them."""
    held = policy_of(request)
    own = able(held, starter_of(request.run), escalated_to(request))
    if held.approvers.four_eyes:
        own -= same_eyes(request).keys()
    standing_in = persons(standing_in_for(request, own) - own, request)
    others = {user for user, person in standing_in.items() if person.may(request, approve=True).allowed}
    if held.approvers.quorum > 1:
        cast = standing_votes(request, list(request.votes.order_by("id")))
        own -= counted_votes(request, cast).keys()
    return own | others


def everybody(request: ApprovalRequest) -> set[int]:
    """The ids of all users who may approve or reject this request, whether or not they did already, and its starter.

    A starter without an address for mails, such as an account of a program, is left out.
    """
    own = able(policy_of(request), escalated=escalated_to(request))
    others = standing_in_for(request, own) - own
    starter = get_user_model().objects.filter(pk__in=[starter_of(request.run)], is_active=True).exclude(email="")
    found = own | set(holders().filter(pk__in=others).values_list("pk", flat=True))
    return found | set(starter.values_list("pk", flat=True))


def standing_in_for(request: ApprovalRequest, users: set[int]) -> set[int]:
    """Who may act on the request in the place of one of these, as far as the policy lets it be handed on."""
    if not policy_of(request).approvers.delegate:
        return set()
    handed = Delegation.objects.filter(request=request).values_list("from_user_id", "to_user_id")
    away = Absence.objects.filter(workspace=request.workspace, starts_at__lte=DbNow(), ends_at__gt=DbNow())
    pairs = [*handed, *away.values_list("user", "substitute")]
    return {other for user, other in pairs if user in users}


def doubt(policy: Policy, run: Run, *, escalated: bool = False) -> str:
    """Why nobody can satisfy this policy today, and which of its names nobody bears; empty when all is well.

    Not asked where the policy says nothing of who decides: that costs each pause its look at all users.
    """
    if policy.approvers == Approvers() and policy.escalate is None:
        return ""
    return "; ".join([*_short_of(policy, starter_of(run), escalated), *unknown_names(policy)])


def _short_of(policy: Policy, starter: int | None, escalated: bool) -> list[str]:
    approvers, escalate = policy.approvers, policy.escalate
    later = escalate.groups if escalate is not None else ()
    there = len(able(policy, starter, later if escalated else ()))
    if there >= approvers.quorum:
        return []
    less = "nobody" if there == 0 else f"only {there}"
    without = " who did not start the run" if approvers.four_eyes else ""
    asked = who(approvers, later if escalated else ())
    words = [f"{less} of {asked}{without} may approve today, and {approvers.quorum} must"]
    if escalate is not None and not escalated and len(able(policy, starter, later)) >= approvers.quorum:
        words.append(f"it can be approved once it is escalated, after {duration(timedelta(seconds=escalate.after))}")
    elif approvers.delegate and there:
        words.append("handing it on does not help: whoever takes it counts as one person with the giver")
    return words


def unknown_names(policy: Policy) -> list[str]:
    """What the policy calls users and groups and nobody bears, a sentence each."""
    approvers, escalate = policy.approvers, policy.escalate
    field = get_user_model().USERNAME_FIELD
    groups = [*(approvers.groups or ()), *(escalate.groups if escalate is not None else ())]
    users: Any = get_user_model().objects
    named = approvers.users or ()
    there = set(users.filter(**{f"{field}__in": named}).values_list(field, flat=True)) if named else set()
    found = set(Group.objects.filter(name__in=groups).values_list("name", flat=True)) if groups else set()
    missing = [f'there is no user "{name}"' for name in named if name not in there]
    return missing + [f'there is no group "{name}"' for name in dict.fromkeys(groups) if name not in found]
