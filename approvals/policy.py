"""Who may decide: evaluated when it is asked, against current membership. The same function draws the buttons."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth import get_user_model

from approvals.models import ApprovalRequest
from workflows.actors import Actor
from workflows.errors import NotAllowed

DECIDE = "approvals.decide"
VIEW = "approvals.view_request"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`rule` says in words which rule allowed or refused."""

    allowed: bool
    rule: str


def has_permission(actor: Actor, permission: str) -> bool:
    """Whether the actor's Django user is active and holds the permission now."""
    if actor.user_id is None:
        return False
    user = get_user_model().objects.filter(pk=actor.user_id).first()
    return user is not None and user.is_active and user.has_perm(permission)


def may_decide_at_all(actor: Actor) -> Verdict:
    """The permission that is always needed; asked before any look-up, so that it tells nothing about keys."""
    if actor.surface in ("rule", "system"):
        return Verdict(allowed=True, rule="decided by a rule")
    if has_permission(actor, DECIDE):
        return Verdict(allowed=True, rule=f"holds {DECIDE}")
    return Verdict(allowed=False, rule=f"the permission {DECIDE} is needed; ask an administrator for it")


def may_decide(request: ApprovalRequest, actor: Actor) -> Verdict:
    """Whether this actor may decide this request now."""
    return may_decide_at_all(actor)


def may_view(actor: Actor) -> bool:
    """Whether the actor may see requests and what became of them."""
    return has_permission(actor, VIEW) or has_permission(actor, DECIDE)


def need(verdict: Verdict) -> None:
    """NotAllowed, naming the rule, unless the verdict allows it."""
    if not verdict.allowed:
        raise NotAllowed(verdict.rule, rule=verdict.rule)
