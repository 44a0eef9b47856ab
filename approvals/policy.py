"""Who may decide: evaluated when it is asked, against current membership. The same function draws the buttons."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from django.contrib.auth.models import AbstractUser

from approvals.models import ApprovalRequest, Edit, Vote
from approvals.people import DECIDE as DECIDE
from approvals.people import active_user, active_users, decides, groups_of
from approvals.standins import StandingIn
from statestore.clock import now
from workflows.actors import Actor
from workflows.errors import NotAllowed
from workflows.models import Run
from workflows.spec.policy_model import Approvers, Policy
from workflows.visible import duration

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


def may_decide_at_all(actor: Actor) -> Verdict:
    """The permission that is always needed; asked before any look-up, so that it tells nothing about keys."""
    return _holds(active_user(actor.user_id))


def _holds(user: AbstractUser | None) -> Verdict:
    if user is not None and decides(user):
        return Verdict(allowed=True, rule=f"holds {DECIDE}")
    return Verdict(allowed=False, rule=f"the permission {DECIDE} is needed; ask an administrator for it")


class Seen:
    """What was done with some requests so far, and in whose place users may act; each is asked once, when needed."""

    def __init__(self, users: Iterable[int], requests: Iterable[int]) -> None:
        self._users = frozenset(users)
        self.requests = frozenset(requests)

    @functools.cached_property
    def votes(self) -> dict[int, list[Vote]]:
        """By request, in the order of giving."""
        found: dict[int, list[Vote]] = {}
        for vote in Vote.objects.filter(request__in=self.requests).order_by("id"):
            found.setdefault(vote.request_id, []).append(vote)
        return found

    @functools.cached_property
    def proposers(self) -> dict[int, set[int]]:
        """By request, those whose edits are part of what waits."""
        found: dict[int, set[int]] = {}
        for request, user in Edit.objects.filter(request__in=self.requests).values_list("request", "user_id"):
            found.setdefault(request, set()).add(user)
        return found

    @functools.cached_property
    def standing_in(self) -> StandingIn:
        return StandingIn(self._users, self.requests)


class Person:
    """The answers for one actor: what is asked of the database is asked once, however many requests there are.

    For the length of one page or one decision; who may decide is a question of now.
    """

    def __init__(self, actor: Actor) -> None:
        self._user_id = actor.user_id or 0
        self._seen = Seen([self._user_id], ())

    @functools.cached_property
    def at_all(self) -> Verdict:
        return _holds(self._user)

    @functools.cached_property
    def _user(self) -> AbstractUser | None:
        return active_user(self._user_id)

    def look_at(self, requests: Iterable[ApprovalRequest]) -> None:
        """Ask about these together, and anew: as many queries for a page as for one."""
        self._seen = Seen([self._user_id], (request.pk for request in requests))

    def may(self, request: ApprovalRequest, *, approve: bool | None = None, break_glass: bool = False) -> Verdict:
        """Whether the actor may approve this request now, or reject it; without `approve`, either of them.

        `break_glass` asks for an approval without four eyes and the number of people: for those who hold the
        permission, where one of the two stands in the way, and nothing else is lifted.
        """
        roles = self._roles(request)
        if not roles[0].allowed:
            return roles[0]
        if break_glass:
            return self._marked(request, self._with_broken_glass(request, roles))
        if not approve:
            return roles[0]
        return self._marked(request, self._others_too(request, self.approving(request)))

    def may_hand_on(self, request: ApprovalRequest) -> Verdict:
        """Whether the actor may hand this request to somebody: who could approve it now, in their own name."""
        if not policy_of(request).approvers.delegate:
            return (
                self.at_all if not self.at_all.allowed else _refused("this request cannot be handed on by its policy")
            )
        verdict = self.may(request, approve=True)
        if verdict.stands_for is not None:
            return _refused("what was handed to you, or is yours while somebody is away, goes no further")
        return verdict

    def approving(self, request: ApprovalRequest) -> list[Verdict]:
        """The roles in which the actor's approval counts now, having voted aside; one refusal where there is none."""
        roles = self._roles(request)
        if not roles[0].allowed or not policy_of(request).approvers.four_eyes:
            return roles
        barred = same_eyes(request, self._about(request).proposers.get(request.pk, set()))
        if self._user_id in barred:
            return [_refused(f"four eyes: whoever {barred[self._user_id]} may not approve it, only reject it")]
        left = [role for role in roles if role.stands_for not in barred]
        return left or [_refused(f"four eyes: you stand in for whoever {barred[roles[0].stands_for or 0]}")]

    def _roles(self, request: ApprovalRequest) -> list[Verdict]:
        """In whose place the user may act: their own, where they are among those who decide, else that of others.

        One refusal where there is none.
        """
        user = self._user
        if user is None or not self.at_all.allowed:
            return [self.at_all]
        approvers, escalated = policy_of(request).approvers, escalated_to(request)
        if rule := named(user, approvers, escalated):
            return [Verdict(allowed=True, rule=rule)]
        standing_in = self._about(request).standing_in.for_whom(self._user_id, request) if approvers.delegate else ()
        roles = [
            Verdict(allowed=True, rule=how, stands_for=other.pk)
            for other, how in standing_in
            if decides(other) and named(other, approvers, escalated)
        ]
        return roles or [_refused(f"this may be decided by {who(approvers, escalated)} only")]

    def _others_too(self, request: ApprovalRequest, roles: list[Verdict]) -> Verdict:
        """The role in which an approval brings the request forward: nobody, and nobody's stand-in, counts twice."""
        if not roles[0].allowed or policy_of(request).approvers.quorum == 1:
            return roles[0]
        given = standing_votes(request, self._about(request).votes.get(request.pk, []))
        if any(vote.user_id == self._user_id for vote in given):
            return _refused("you approved this already; it needs other people as well")
        persons = {role.stands_for or self._user_id for role in roles}
        if persons.isdisjoint({vote.user_id for vote in given} | {vote.for_user_id for vote in given}):
            return roles[0]
        mine = Vote(user_id=self._user_id)
        roles_of = _approving(request, [*given, mine])
        counted = _counted([*given, mine], roles_of)
        if len(counted) == len(_counted(given, roles_of)):
            return _refused("whoever you stand in for, or stands in for you, approved this; you count as one person")
        return next((role for role in roles if counted.get(role.stands_for or self._user_id) is mine), roles[0])

    def _marked(self, request: ApprovalRequest, verdict: Verdict) -> Verdict:
        """Whoever approves a run that they started themselves has it in the proof."""
        if not verdict.allowed or starter_of(request.run) != self._user_id:
            return verdict
        return replace(verdict, rule=f"{verdict.rule}; started the run as well")

    def _with_broken_glass(self, request: ApprovalRequest, roles: list[Verdict]) -> Verdict:
        if self._user is None or not self._user.has_perm(BREAK_GLASS):
            return _refused(f"breaking the glass needs the permission {BREAK_GLASS}")
        if self.approving(request)[0].allowed and policy_of(request).approvers.quorum == 1:
            return _refused("there is no glass here to break: neither four eyes nor a number of people holds you back")
        rule = f"{roles[0].rule}; the glass was broken: four eyes and the number of people are lifted"
        return replace(roles[0], rule=rule)

    def _about(self, request: ApprovalRequest) -> Seen:
        if request.pk not in self._seen.requests:
            self._seen = Seen([self._user_id], [request.pk])
        return self._seen


def persons(user_ids: Iterable[int], request: ApprovalRequest) -> dict[int, Person]:
    """These users, for one request: as many queries for many as for two."""
    wanted = frozenset(user_ids)
    users, seen = active_users(wanted), Seen(wanted, [request.pk])
    found = {}
    for user_id in wanted:
        person = Person(Actor(label="", surface="system", user_id=user_id))
        person._user, person._seen = users.get(user_id), seen
        found[user_id] = person
    return found


def _refused(rule: str) -> Verdict:
    return Verdict(allowed=False, rule=rule)


def named(user: AbstractUser, approvers: Approvers, escalated: tuple[str, ...] = ()) -> str:
    """The rule by which a user who holds the permission is one of those who decide; empty when none is."""
    if approvers.users is None and approvers.groups is None:
        return f"holds {DECIDE}"
    if user.get_username() in (approvers.users or ()):
        return "is one of the users that the spec names"
    groups = groups_of(user)
    group = next((name for name in groups if name in (approvers.groups or ())), None)
    if group is not None:
        return f"is in the group {group}"
    group = next((name for name in groups if name in escalated), None)
    return f"is in the group {group}, to which this was escalated" if group is not None else ""


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


def who(approvers: Approvers, escalated: tuple[str, ...] = ()) -> str:
    """Those who may decide, in words."""
    parts = []
    if approvers.users is None and approvers.groups is None:
        return f"whoever holds {DECIDE}"
    if groups := [*(approvers.groups or ()), *escalated]:
        of = "members of" if len(groups) == 1 else "members of one of"
        parts.append(f"{of} {', '.join(groups)}")
    if approvers.users:
        parts.append(", ".join(approvers.users))
    return " or ".join(parts)


def in_words(policy: Policy) -> str:
    """Who decides, how many of them, and what else is asked, as a sentence for people."""
    approvers, escalate = policy.approvers, policy.escalate
    many = f"{approvers.quorum} people must approve" if approvers.quorum > 1 else "one person decides"
    words = [f"{many}: {who(approvers)}"]
    if escalate is not None:
        groups = ", ".join(escalate.groups)
        may = "are told" if approvers.users is None and approvers.groups is None else "may decide as well"
        words.append(f"after {duration(timedelta(seconds=escalate.after))} members of {groups} {may}")
    if approvers.four_eyes:
        words.append("not whoever started the run")
    if approvers.delegate:
        words.append("who may decide can hand it to somebody else")
    if policy.require_reason != "never":
        words.append("a reason is needed" + (" to reject" if policy.require_reason == "reject" else ""))
    return "; ".join(words)


def starter_of(run: Run) -> int | None:
    """The user who started the chain that this run belongs to; None for a trigger that is nobody."""
    return run.started_by_user_id


def same_eyes(request: ApprovalRequest, proposers: Iterable[int] | None = None) -> dict[int, str]:
    """Whom four eyes keep from approving, each with what they did in words."""
    if proposers is None:
        proposers = Edit.objects.filter(request=request).values_list("user_id", flat=True)
    barred = dict.fromkeys(proposers, "proposed the edit")
    starter = starter_of(request.run)
    return barred if starter is None else barred | {starter: "started the run"}


# Votes -------------------------------------------------------------------------------------------------------


def standing_votes(request: ApprovalRequest, cast: list[Vote]) -> list[Vote]:
    """Those given for exactly what the request shows now, with the answers of the newest of them.

    Nobody's approval carries answers that this person did not give; `cast` is in the order of giving.
    """
    seen = [vote for vote in cast if vote.digest == request.digest]
    return [vote for vote in seen if vote.answers == seen[-1].answers]


def votes(request: ApprovalRequest) -> list[Vote]:
    """The approvals that count now, in the order of giving."""
    if policy_of(request).approvers.quorum == 1:
        return []
    cast = standing_votes(request, list(Vote.objects.filter(request=request).order_by("id")))
    return sorted(counted_votes(request, cast).values(), key=lambda vote: vote.pk)


def counted_votes(request: ApprovalRequest, cast: list[Vote]) -> dict[int, Vote]:
    """By the person for whom each counts: every voter's membership is asked again, and nobody counts twice.

    As many queries for many votes as for two.
    """
    return _counted(cast, _approving(request, cast))


def _approving(request: ApprovalRequest, cast: list[Vote]) -> dict[int, list[Verdict]]:
    """The roles in which each voter's approval counts now, by user."""
    voters = persons({vote.user_id for vote in cast}, request)
    return {user_id: voter.approving(request) for user_id, voter in voters.items()}


def _counted(cast: list[Vote], roles_of: dict[int, list[Verdict]]) -> dict[int, Vote]:
    """Whoever votes in their own name comes first; a stand-in then counts for the first of theirs who is missing."""
    given = [(vote, roles_of[vote.user_id]) for vote in cast]
    allowed = [(vote, roles) for vote, roles in given if roles[0].allowed]
    counted: dict[int, Vote] = {}
    for vote, roles in sorted(allowed, key=lambda one: one[1][0].stands_for is not None):
        persons = [role.stands_for or vote.user_id for role in roles]
        person = next((one for one in persons if one not in counted), None)
        if person is not None:
            counted[person] = vote
    return counted


def may_view(actor: Actor) -> bool:
    """Whether the actor may see requests and what became of them."""
    return has_permission(actor, VIEW) or has_permission(actor, DECIDE)


def need(verdict: Verdict) -> None:
    """NotAllowed, naming the rule, unless the verdict allows it."""
    if not verdict.allowed:
        raise NotAllowed(verdict.rule, rule=verdict.rule)
