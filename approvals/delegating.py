"""Handing one request to another user (spec 1.2, `approvers.delegate`): one step only, and never round four eyes."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.db import transaction

from approvals import audit, eligible, people, policy, records
from approvals.acting import act_on
from approvals.actors import actor_for_user
from approvals.models import ApprovalRequest, Delegation
from approvals.notices.outbox import tell
from approvals.policy import Verdict
from approvals.services import changed, checked_reason, proof
from statestore.clock import now
from statestore.entries import Versioned
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.errors import Invalid
from workflows.models import WORKSPACE
from workflows.runs import check_text

#: More names than that are no choice for a person; `delegate` takes any user that fits.
MOST_CANDIDATES = 200


def delegate(
    key: str, *, to: str, actor: Actor, reason: str | None = None, workspace: str = WORKSPACE
) -> ApprovalRequest:
    """Hand a pending request to the user with the name `to`, who may decide it from now on in the actor's place.

    Whoever hands it on can still decide; both count as one person. It holds for as long as the giver may decide.

    Raises NotAllowed (without the permission before any look-up; where the policy forbids it, or the actor could not
    approve in their own name), ApprovalNotFound, Invalid (`to` cannot take it), AlreadyResolved and Busy. A refusal
    changes nothing.
    """
    policy.need(policy.may_decide_at_all(actor))
    why = checked_reason(reason)
    check_text(to, "to")

    def act(request: ApprovalRequest, stored: Versioned) -> ApprovalRequest | None:
        records.check_format(stored.value)
        _checked(request, actor, to)
        with transaction.atomic():
            if not records.store_of(workspace, request.agent_id).bump(records.store_key(request.key), stored.version):
                return None
            # Read again inside: who may decide is a question of now.
            verdict, receiver = _checked(request, actor, to)
            _hand(request, actor, receiver, verdict, why)
        return request

    return act_on(key, act, workspace=workspace)


def candidates(request: ApprovalRequest, actor: Actor) -> list[AbstractUser]:
    """To whom the actor could hand this request now, by name, the first 200; nobody where the actor may not."""
    if not policy.Person(actor).may_hand_on(request).allowed:
        return []
    held = policy.policy_of(request)
    own = eligible.able(held, escalated=policy.escalated_to(request))
    barred = policy.same_eyes(request).keys() if held.approvers.four_eyes else ()
    taken = {*own, *eligible.standing_in_for(request, own), *barred}
    return list(people.holders().exclude(pk__in=taken).order_by(get_user_model().USERNAME_FIELD)[:MOST_CANDIDATES])


def _checked(request: ApprovalRequest, actor: Actor, to: str) -> tuple[Verdict, AbstractUser]:
    """The rule by which the actor may hand it on, and the user who may take it."""
    verdict = policy.Person(actor).may_hand_on(request)
    policy.need(verdict)
    users: Any = get_user_model().objects
    receiver = users.filter(**{get_user_model().USERNAME_FIELD: to}, is_active=True).first()
    if receiver is None:
        raise _unfit("there is no active user of this name")
    if receiver.pk == actor.user_id:
        raise _unfit("it is in your hands already")
    if not receiver.has_perm(policy.DECIDE):
        raise _unfit(f"this user does not hold {policy.DECIDE}; ask an administrator for it, or name somebody else")
    barred = policy.same_eyes(request) if policy.policy_of(request).approvers.four_eyes else {}
    if receiver.pk in barred:
        raise _unfit(f"under four eyes not to whoever {barred[receiver.pk]}")
    if policy.may_decide(request, actor_for_user(receiver, actor.surface)).allowed:
        raise _unfit("this user may decide it already")
    return verdict, receiver


def _hand(request: ApprovalRequest, actor: Actor, receiver: AbstractUser, verdict: Verdict, reason: str) -> None:
    assert actor.user_id is not None, "only a user is among those who decide"
    name = receiver.get_username()
    Delegation.objects.create(
        request=request,
        from_user_id=actor.user_id,
        from_label=actor.label,
        to_user_id=receiver.pk,
        to_label=name,
        at=now(),
    )
    audit.of_request(
        "delegate",
        request,
        actor=actor,
        reason=reason,
        policy=jsontext.dumps(proof(request, verdict)),
        details=jsontext.dumps({"from": actor.label, "to": name, "to_user_id": receiver.pk}),
    )
    changed(request)
    tell(request, "handed", users=[receiver.pk], by=actor.label, reason=reason)


def _unfit(message: str) -> Invalid:
    return Invalid(f"to: {message}", [{"path": "to", "message": message}])
