"""Who may decide: evaluated when it is asked, against current membership. The same function draws the buttons."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AbstractUser
from django.db.models import Q

from approvals.models import ApprovalRequest, Vote
from workflows.actors import Actor
from workflows.errors import NotAllowed
from workflows.models import Run
from workflows.spec.policy_model import Approvers, Policy

DECIDE = "approvals.decide"
VIEW = "approvals.view_request"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`rule` says in words which rule allowed or refused."""

    allowed: bool
    rule: str


@functools.lru_cache(maxsize=256)
def _read(text: str) -> Policy:
    return Policy.model_validate_json(text)


def policy_of(request: ApprovalRequest) -> Policy:
    """The policy under which a request was opened."""
    return _read(request.policy)


def has_permission(actor: Actor, permission: str) -> bool:
    """Whether the actor's Django user is active and holds the permission now."""
    user = _user(actor.user_id)
    return user is not None and user.has_perm(permission)


def _user(user_id: int | None) -> AbstractUser | None:
    """The active user with this id."""
    if user_id is None:
        return None
    users: Any = get_user_model().objects
    found: AbstractUser | None = users.filter(pk=user_id, is_active=True).first()
    return found


def may_decide_at_all(actor: Actor) -> Verdict:
    """The permission that is always needed; asked before any look-up, so that it tells nothing about keys."""
    if actor.surface in ("rule", "system"):
        return Verdict(allowed=True, rule="decided by a rule")
    if has_permission(actor, DECIDE):
        return Verdict(allowed=True, rule=f"holds {DECIDE}")
    return Verdict(allowed=False, rule=f"the permission {DECIDE} is needed; ask an administrator for it")


class Person:
    """The answers for one actor: what is asked of the database is asked once, however many requests there are.

    For the length of one page or one decision; who may decide is a question of now.
    """

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._votes: dict[int, list[Vote]] | None = None

    @functools.cached_property
    def at_all(self) -> Verdict:
        return may_decide_at_all(self._actor)

    @functools.cached_property
    def _user(self) -> AbstractUser | None:
        return _user(self._actor.user_id)

    @functools.cached_property
    def _groups(self) -> list[str]:
        return [] if self._user is None else list(self._user.groups.order_by("name").values_list("name", flat=True))

    def look_at(self, requests: Iterable[ApprovalRequest]) -> None:
        """Read at once the votes on those of these on which the actor voted."""
        asked = [request.pk for request in requests]
        voted_on = Vote.objects.filter(request__in=asked, user_id=self._actor.user_id or 0).values("request")
        self._votes = {}
        for vote in Vote.objects.filter(request__in=voted_on).order_by("id"):
            self._votes.setdefault(vote.request_id, []).append(vote)

    def may(self, request: ApprovalRequest, *, approve: bool | None = None) -> Verdict:
        """Whether the actor may approve this request now, or reject it; without `approve`, either of them."""
        if not self.at_all.allowed or self._actor.surface in ("rule", "system"):
            return self.at_all
        approvers = policy_of(request).approvers
        among = self._among(approvers)
        if not among.allowed or not approve:
            return among
        if approvers.four_eyes and self._actor.user_id == starter_of(request.run):
            return Verdict(allowed=False, rule="four eyes: whoever started the run may not approve it, only reject it")
        if approvers.quorum > 1 and self._has_voted(request):
            return Verdict(allowed=False, rule="you approved this already; it needs other people as well")
        return among

    def _has_voted(self, request: ApprovalRequest) -> bool:
        """Whether a vote of the actor stands: other answers, or another action, have not come after it."""
        if self._votes is not None:
            standing = _standing(request, self._votes.get(request.pk, []))
        else:
            standing = _standing(request, list(Vote.objects.filter(request=request).order_by("id")))
        return any(vote.user_id == self._actor.user_id for vote in standing)

    def _among(self, approvers: Approvers) -> Verdict:
        """Whether the user is one of those to whom the spec narrows the decision."""
        if approvers.users is None and approvers.groups is None:
            return Verdict(allowed=True, rule=f"holds {DECIDE}")
        if self._user is not None and self._user.get_username() in (approvers.users or ()):
            return Verdict(allowed=True, rule="is one of the users that the spec names")
        group = next((name for name in self._groups if name in (approvers.groups or ())), None)
        if group is not None:
            return Verdict(allowed=True, rule=f"is in the group {group}")
        return Verdict(allowed=False, rule=f"this may be decided by {who(approvers)} only")


def may_decide(request: ApprovalRequest, actor: Actor, *, approve: bool | None = None) -> Verdict:
    """Whether this actor may approve this request now, or reject it; without `approve`, either of them."""
    return Person(actor).may(request, approve=approve)


def who(approvers: Approvers) -> str:
    """Those who may decide, in words."""
    parts = []
    if approvers.groups:
        of = "members of" if len(approvers.groups) == 1 else "members of one of"
        parts.append(f"{of} {', '.join(approvers.groups)}")
    if approvers.users:
        parts.append(", ".join(approvers.users))
    return " or ".join(parts) or f"whoever holds {DECIDE}"


def in_words(policy: Policy) -> str:
    """Who decides, how many of them, and what else is asked, as a sentence for people."""
    approvers = policy.approvers
    many = f"{approvers.quorum} people must approve" if approvers.quorum > 1 else "one person decides"
    words = [f"{many}: {who(approvers)}"]
    if approvers.four_eyes:
        words.append("not whoever started the run")
    if policy.require_reason != "never":
        words.append("a reason is needed" + (" to reject" if policy.require_reason == "reject" else ""))
    return "; ".join(words)


def starter_of(run: Run) -> int | None:
    """The user who started the chain that this run belongs to; None for a trigger that is nobody."""
    return run.started_by_user_id


# Votes -------------------------------------------------------------------------------------------------------


def _standing(request: ApprovalRequest, cast: list[Vote]) -> list[Vote]:
    """Those given for exactly what the request shows now, with the answers of the newest of them.

    Nobody's approval carries answers that this person did not give; `cast` is in the order of giving.
    """
    seen = [vote for vote in cast if vote.digest == request.digest]
    return [vote for vote in seen if vote.answers == seen[-1].answers]


def votes(request: ApprovalRequest) -> list[Vote]:
    """The approvals that count now: each voter's membership is asked again."""
    approvers = policy_of(request).approvers
    if approvers.quorum == 1:
        return []
    cast = _standing(request, list(Vote.objects.filter(request=request).order_by("id")))
    holders = able(approvers, request.run) if cast else set()
    return [vote for vote in cast if vote.user_id in holders]


def able(approvers: Approvers, run: Run) -> set[int]:
    """The ids of all users who could approve now."""
    # The backend's own: a host project's manager need not have `with_perm`.
    users: Any = ModelBackend().with_perm(DECIDE)
    if approvers.users is not None or approvers.groups is not None:
        name = f"{get_user_model().USERNAME_FIELD}__in"
        users = users.filter(Q(**{name: approvers.users or ()}) | Q(groups__name__in=approvers.groups or ()))
    found = set(users.values_list("pk", flat=True))
    return found - {starter_of(run)} if approvers.four_eyes else found


def doubt(policy: Policy, run: Run) -> str:
    """Why nobody can satisfy this policy today; empty when it can be satisfied.

    Not asked where the policy says nothing of who decides: that costs each pause its look at all users.
    """
    approvers = policy.approvers
    if approvers == Approvers():
        return ""
    there = len(able(approvers, run))
    if there >= approvers.quorum:
        return ""
    less = "nobody" if there == 0 else f"only {there}"
    without = " who did not start the run" if approvers.four_eyes else ""
    return f"{less} of {who(approvers)}{without} may approve today, and {approvers.quorum} must"


def may_view(actor: Actor) -> bool:
    """Whether the actor may see requests and what became of them."""
    return has_permission(actor, VIEW) or has_permission(actor, DECIDE)


def need(verdict: Verdict) -> None:
    """NotAllowed, naming the rule, unless the verdict allows it."""
    if not verdict.allowed:
        raise NotAllowed(verdict.rule, rule=verdict.rule)
