"""Who may decide: evaluated when it is asked, against current membership. The same function draws the buttons."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AbstractUser
from django.db.models import Q

from approvals.models import ApprovalRequest, Edit, Vote
from approvals.standins import StandingIn
from statestore.clock import now
from workflows.actors import Actor
from workflows.errors import NotAllowed
from workflows.models import Run
from workflows.spec.policy_model import Approvers, Policy

DECIDE = "approvals.decide"
BREAK_GLASS = "approvals.break_glass"
REBIND = "approvals.rebind"
VIEW = "approvals.view_request"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`rule` says in words which rule allowed or refused; `stands_for` is the user in whose place the actor acts."""

    allowed: bool
    rule: str
    stands_for: int | None = None


@functools.lru_cache(maxsize=256)
def _read(text: str) -> Policy:
    return Policy.model_validate_json(text)


def policy_of(request: ApprovalRequest) -> Policy:
    """The policy under which a request was opened."""
    return _read(request.policy)


def has_permission(actor: Actor, permission: str) -> bool:
    """Whether the actor's Django user is active and holds the permission now."""
    user = active_user(actor.user_id)
    return user is not None and user.has_perm(permission)


def active_user(user_id: int | None) -> AbstractUser | None:
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
        self._edited: set[int] | None = None
        self._standing_in: StandingIn | None = None

    @functools.cached_property
    def at_all(self) -> Verdict:
        return may_decide_at_all(self._actor)

    @functools.cached_property
    def may_break_glass(self) -> bool:
        return self._user is not None and self._user.has_perm(BREAK_GLASS)

    @functools.cached_property
    def _user(self) -> AbstractUser | None:
        return active_user(self._actor.user_id)

    def look_at(self, requests: Iterable[ApprovalRequest]) -> None:
        """Read at once what the actor did with these, and which of them were handed to the actor."""
        asked = [request.pk for request in requests]
        user_id = self._actor.user_id or 0
        voted_on = Vote.objects.filter(request__in=asked, user_id=user_id).values("request")
        self._votes = {}
        for vote in Vote.objects.filter(request__in=voted_on).order_by("id"):
            self._votes.setdefault(vote.request_id, []).append(vote)
        edited = Edit.objects.filter(request__in=asked, user_id=user_id)
        self._edited = set(edited.values_list("request", flat=True))
        self._standing_in = StandingIn(user_id, asked)

    def may(self, request: ApprovalRequest, *, approve: bool | None = None, break_glass: bool = False) -> Verdict:
        """Whether the actor may approve this request now, or reject it; without `approve`, either of them.

        `break_glass` lifts four eyes and the number of people, for those who hold the permission, and nothing else.
        """
        if not self.at_all.allowed or self._actor.surface in ("rule", "system"):
            return self.at_all
        approvers = policy_of(request).approvers
        among = self._among(request, approvers)
        if break_glass:
            return self._with_broken_glass(among)
        if not among.allowed or not approve:
            return among
        if approvers.four_eyes:
            barred = self._four_eyes(request, among)
            if barred is not None:
                return barred
        if approvers.quorum > 1 and self._has_voted(request):
            return Verdict(allowed=False, rule="you approved this already; it needs other people as well")
        return among

    def counts(self, request: ApprovalRequest) -> Verdict:
        """Whether a vote of the actor counts now: what `may` says of an approval, but for having voted."""
        if self._user is None or not self._user.has_perm(DECIDE):
            return Verdict(allowed=False, rule=f"the permission {DECIDE} is needed")
        approvers = policy_of(request).approvers
        among = self._among(request, approvers)
        barred = self._four_eyes(request, among) if among.allowed and approvers.four_eyes else None
        return barred or among

    def _with_broken_glass(self, among: Verdict) -> Verdict:
        if not among.allowed:
            return among
        if not self.may_break_glass:
            return Verdict(allowed=False, rule=f"breaking the glass needs the permission {BREAK_GLASS}")
        return replace(among, rule=f"{among.rule}; the glass was broken: four eyes and the number of people are lifted")

    def _four_eyes(self, request: ApprovalRequest, among: Verdict) -> Verdict | None:
        """Why this is the same pair of eyes; None where it is another."""
        me, starter = self._actor.user_id, starter_of(request.run)
        if me == starter:
            return Verdict(allowed=False, rule="four eyes: whoever started the run may not approve it, only reject it")
        if self._proposed(request):
            return Verdict(allowed=False, rule="four eyes: whoever proposed the edit may not approve it")
        if among.stands_for is not None and among.stands_for in {starter, *proposers(request)}:
            rule = "four eyes: whoever handed this to you started the run or proposed the edit"
            return Verdict(allowed=False, rule=rule)
        return None

    def _proposed(self, request: ApprovalRequest) -> bool:
        if self._edited is not None:
            return request.pk in self._edited
        return self._actor.user_id in proposers(request)

    def _has_voted(self, request: ApprovalRequest) -> bool:
        """Whether a vote of the actor stands: other answers, or another action, have not come after it."""
        if self._votes is not None:
            cast = standing_votes(request, self._votes.get(request.pk, []))
        else:
            cast = standing_votes(request, list(Vote.objects.filter(request=request).order_by("id")))
        return any(vote.user_id == self._actor.user_id for vote in cast)

    def _among(self, request: ApprovalRequest, approvers: Approvers) -> Verdict:
        """Whether the user is one of those to whom the spec narrows the decision, or stands in for one of them."""
        if self._user is None:
            return Verdict(allowed=False, rule="no active user acts")
        rule = named(self._user, approvers, escalated_to(request))
        if rule:
            return Verdict(allowed=True, rule=rule)
        if approvers.delegate:
            standing_in = self._standing_in or StandingIn(self._user.pk, [request.pk])
            for principal, how in standing_in.for_whom(request):
                if principal.has_perm(DECIDE) and named(principal, approvers, escalated_to(request)):
                    return Verdict(allowed=True, rule=how, stands_for=principal.pk)
        return Verdict(allowed=False, rule=f"this may be decided by {who(approvers)} only")


def named(user: AbstractUser, approvers: Approvers, escalated: tuple[str, ...] = ()) -> str:
    """The rule by which a user who holds the permission is one of those who decide; empty when none is."""
    if approvers.users is None and approvers.groups is None:
        return f"holds {DECIDE}"
    if user.get_username() in (approvers.users or ()):
        return "is one of the users that the spec names"
    groups = _groups_of(user)
    group = next((name for name in groups if name in (approvers.groups or ())), None)
    if group is not None:
        return f"is in the group {group}"
    group = next((name for name in groups if name in escalated), None)
    return f"is in the group {group}, to which this was escalated" if group is not None else ""


def _groups_of(user: AbstractUser) -> list[str]:
    """Asked once for each user object, which lives for one page or one decision."""
    held: list[str] | None = getattr(user, "_kampong_groups", None)
    if held is None:
        held = list(user.groups.order_by("name").values_list("name", flat=True))
        user._kampong_groups = held  # type: ignore[attr-defined]
    return held


def escalated_to(request: ApprovalRequest) -> tuple[str, ...]:
    """The groups that may decide too by now, because it waits for so long."""
    escalate = policy_of(request).escalate
    due = request.escalate_at is not None and request.escalate_at <= now()
    return escalate.groups if escalate is not None and due else ()


def may_decide(
    request: ApprovalRequest, actor: Actor, *, approve: bool | None = None, break_glass: bool = False
) -> Verdict:
    """Whether this actor may approve this request now, or reject it; without `approve`, either of them."""
    return Person(actor).may(request, approve=approve, break_glass=break_glass)


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


def proposers(request: ApprovalRequest) -> set[int]:
    """Those whose edits are part of what waits."""
    return set(Edit.objects.filter(request=request).values_list("user_id", flat=True))


def standing_votes(request: ApprovalRequest, cast: list[Vote]) -> list[Vote]:
    """Those given for exactly what the request shows now, with the answers of the newest of them.

    Nobody's approval carries answers that this person did not give; `cast` is in the order of giving.
    """
    seen = [vote for vote in cast if vote.digest == request.digest]
    return [vote for vote in seen if vote.answers == seen[-1].answers]


def votes(request: ApprovalRequest) -> list[Vote]:
    """The approvals that count now: each voter's membership is asked again, and stand-ins count as one person."""
    approvers = policy_of(request).approvers
    if approvers.quorum == 1:
        return []
    cast = standing_votes(request, list(Vote.objects.filter(request=request).order_by("id")))
    counted: dict[int, Vote] = {}
    for vote in cast:
        voter = active_user(vote.user_id)
        if voter is None:
            continue
        verdict = _still_counts(request, voter)
        if verdict.allowed:
            counted.setdefault(verdict.stands_for or vote.user_id, vote)
    return list(counted.values())


def _still_counts(request: ApprovalRequest, voter: AbstractUser) -> Verdict:
    """Whether this voter could approve now, but for having voted."""
    person = Person(Actor(label=voter.get_username(), surface="system", user_id=voter.pk))
    return person.counts(request)


def able(policy: Policy, run: Run, escalated: tuple[str, ...] = ()) -> set[int]:
    """The ids of all users who could approve now in their own name."""
    approvers = policy.approvers
    # The backend's own: a host project's manager need not have `with_perm`.
    users: Any = ModelBackend().with_perm(DECIDE)
    if approvers.users is not None or approvers.groups is not None:
        name = f"{get_user_model().USERNAME_FIELD}__in"
        groups = [*(approvers.groups or ()), *escalated]
        users = users.filter(Q(**{name: approvers.users or ()}) | Q(groups__name__in=groups))
    found = set(users.values_list("pk", flat=True))
    return found - {starter_of(run)} if approvers.four_eyes else found


def doubt(policy: Policy, run: Run) -> str:
    """Why nobody can satisfy this policy today; empty when it can be satisfied.

    Not asked where the policy says nothing of who decides: that costs each pause its look at all users.
    """
    approvers = policy.approvers
    if approvers == Approvers():
        return ""
    there = len(able(policy, run))
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
