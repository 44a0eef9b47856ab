"""Approvals that need several people: a vote each, until enough of them count (spec 1.2, `approvers.quorum`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from approvals import audit, policy
from approvals.models import ApprovalRequest, Vote
from approvals.policy import Verdict
from statestore.clock import now
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.errors import NotAllowed
from workflows.times import rfc3339


class Asked(Protocol):
    """What of a decision a vote keeps."""

    @property
    def actor(self) -> Actor: ...
    @property
    def reason(self) -> str: ...
    @property
    def digest(self) -> str | None: ...
    @property
    def answers(self) -> Json | None: ...
    @property
    def seen(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Cast:
    """A vote that does not decide yet: `votes` as on the wire, `decision` as the queue would tell it."""

    votes: dict[str, Any]
    decision: dict[str, Any]


def standing(request: ApprovalRequest) -> dict[str, Any]:
    """`{needed, given, by: [{by, at, answers?}]}`: the approvals that count now, all with the same answers."""
    by = [
        {"by": vote.label, "at": rfc3339(vote.at)} | ({"answers": jsontext.loads(vote.answers)} if vote.answers else {})
        for vote in policy.votes(request)
    ]
    return {"needed": policy.policy_of(request).approvers.quorum, "given": len(by), "by": by}


def answered(votes: list[dict[str, Any]]) -> Json | None:
    """What those whose votes count answered; None where nobody voted or there is no form."""
    return votes[0].get("answers") if votes else None


def proof(votes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The votes as the audit keeps them beside the answers of its entry."""
    return [{"by": vote["by"], "at": vote["at"]} for vote in votes]


def cast(request: ApprovalRequest, asked: Asked, verdict: Verdict) -> Cast | None:
    """Store this approval as a vote. None when with it enough people approve: then it decides.

    Other answers than those given so far void the votes before (as an edit does): nobody's approval goes on with
    answers that are not this person's. Inside the transaction that holds the record's row, so two votes at once
    cannot miss each other.
    """
    if policy.policy_of(request).approvers.quorum == 1:
        return None
    user_id = asked.actor.user_id
    if user_id is None:
        raise NotAllowed("only people vote", rule="only people vote")
    Vote.objects.filter(request=request, user_id=user_id).delete()
    Vote.objects.create(
        request=request,
        user_id=user_id,
        for_user_id=verdict.stands_for,
        label=asked.actor.label,
        digest=request.digest,
        answers="" if asked.answers is None else jsontext.canonical(asked.answers),
        reason=asked.reason,
        surface=asked.actor.surface,
        at=now(),
    )
    votes = standing(request)
    if votes["given"] >= votes["needed"]:
        return None
    evaluated = {"policy": jsontext.loads(request.policy), "rule": verdict.rule, "votes": proof(votes["by"])}
    entry = audit.of_request(
        "vote",
        request,
        outcome="approved",
        actor=asked.actor,
        reason=asked.reason,
        digest_sent=asked.digest is not None,
        answers="" if asked.answers is None else jsontext.dumps(asked.answers),
        policy=jsontext.dumps(evaluated),
        details=jsontext.dumps(asked.seen) if asked.seen else "",
    )
    told = {"outcome": "voted", "by": entry.actor, "at": rfc3339(entry.at), "surface": entry.surface}
    return Cast(votes=votes, decision=told)
