"""What the page behind a signed link says: the request as its recipient may see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest
from django.urls import reverse

from approvals import ballots, formfields, looking, policy, records, services
from approvals.admin import words
from approvals.admin.refusals import Problem
from approvals.models import ApprovalRequest
from approvals.records import Record
from approvals.services import REASON_LIMIT
from approvals.typed import BEGUN, begun_with
from workflows.actors import Actor
from workflows.admin.words import ago, clipped, data, visible
from workflows.engine import jsontext
from workflows.engine.values import NOTHING

SIGN_IN = "admin:approvals_approvalrequest_decide"
#: The characters of all earlier outputs together, and of one.
OUTPUTS, ONE_OUTPUT = 100_000, 20_000


@dataclass(frozen=True, kw_only=True)
class Tried:
    """Why a POST did not decide; nothing for a page that is only read."""

    problem: Problem | None = None
    errors: Sequence[dict[str, str]] = field(default_factory=tuple)


def context_of(
    request: HttpRequest, row: ApprovalRequest, user: AbstractUser, actor: Actor, tried: Tried
) -> dict[str, Any]:
    """Everything that the template needs, texts of others made visible."""
    record = records.peek(row) if words.is_open(row) else None
    context: dict[str, Any] = {
        "row": row,
        "badge": words.badge_of(row),
        "agent": clipped(row.agent_id, 100),
        "step": clipped(row.step, 120),
        "me": clipped(actor.label, 120),
        "address": clipped(user.email, 200),
        "other": _signed_in(request, user),
        "started_by": clipped(row.run.started_by or "nobody", 120),
        "started_ago": ago(row.run.created_at),
        "asked_ago": ago(row.created_at),
        "left": words.left(row),
        "desk": reverse(SIGN_IN, args=[row.pk]) if user.is_staff else "",
        "problem": tried.problem,
        "fields": (),
    }
    if record is None:
        over = {"is_over": True, "line": words.line_of(row), "ending": visible(words.ending_of(row))}
        return context | over | {"problem": _too_late(tried.problem)}
    return context | _waiting(row, record, actor) | _typed(request, row, tried)


def _signed_in(request: HttpRequest, user: AbstractUser) -> str:
    """The other person who is signed in in this browser, if there is one: the link does not act as them."""
    present = request.user
    return clipped(present.get_username(), 120) if present.is_authenticated and present.pk != user.pk else ""


def _too_late(problem: Problem | None) -> Problem | None:
    """The page of a request that is over says how it ended; there is nothing left to do here."""
    return replace(problem, next_move="There is nothing left to do.") if problem is not None else None


def _waiting(row: ApprovalRequest, record: Record, actor: Actor) -> dict[str, Any]:
    yes, no = words.promise_of(row, record)
    held = policy.policy_of(row)
    person = policy.Person(actor)
    approve, reject = (person.may(row, approve=choice) for choice in (True, False))
    present = services.present_hash(row)
    return {
        "yes": yes,
        "no": no,
        "is_question": row.kind == "approval",
        "digest": record["digest"],
        "approve": approve,
        "reject": reject,
        "who": visible(policy.in_words(held)) if row.policy not in ("", "{}") else "",
        "doubt": visible(row.doubt),
        "advice": visible(str(record.get("advice", {}).get("reason", ""))),
        "reason_needed": held.require_reason,
        "spec_changed": present != record["spec_hash"],
        "recorded_hash": record["spec_hash"][:12],
        "present_hash": present[:12] if present else "",
        "previous": _previous(record),
        "changed": _changed(row, record),
        "outputs": _outputs(record),
        **_shown(row, record, actor),
        **_votes(row, actor),
    }


def _shown(row: ApprovalRequest, record: Record, actor: Actor) -> dict[str, Any]:
    """The action in whole, or clipped, with where all of it can be had."""
    action, whole = record["action"], looking.whole(record)
    limit = looking.LIMITS["link"]
    cut = max(0, len(whole) - limit)
    message = visible(str(record["reason"]))
    if action is None and len(message) > limit:
        message = f"{message[:limit].rstrip()}…"
    return {
        "message": message,
        "rows": words.rows_of(row.kind, action, cut=cut) if action is not None else [],
        "clipped": f"clipped, {limit:,} of {len(whole):,} characters" if cut else "",
        "looked": bool(cut) and looking.has_looked(row, actor.user_id, record["digest"]),
    }


def _outputs(record: Record) -> list[tuple[str, Any]]:
    outputs = list(record["outputs"].items())
    most = min(ONE_OUTPUT, OUTPUTS // max(1, len(outputs)))
    return [(clipped(step, 120), data(value, most=most)) for step, value in outputs]


def _votes(row: ApprovalRequest, actor: Actor) -> dict[str, Any]:
    """Who approved so far, what they answered, and whether the recipient is one of them."""
    if policy.policy_of(row).approvers.quorum == 1:
        return {"votes": None, "answered": [], "counted": ""}
    votes = ballots.standing(row)
    answered = ballots.answered(votes["by"])
    mine = any(vote.user_id == actor.user_id for vote in policy.votes(row))
    return {
        "votes": votes | {"by": [clipped(vote["by"], 120) for vote in votes["by"]]},
        "answered": [(clipped(name, 120), data(value)) for name, value in answered.items()] if answered else [],
        "counted": words.vote_counts(votes) if mine else "",
    }


def _changed(row: ApprovalRequest, record: Record) -> dict[str, Any] | None:
    """What people changed since it was asked first, the values beside each other."""
    changed = words.changed_of(row, record)
    if changed is None:
        return None
    lines = [
        (clipped(one.path, 120), *(None if side is NOTHING else data(side) for side in (one.before, one.after)))
        for one in changed.values
    ]
    return {"by": changed.by, "lines": lines}


def _previous(record: Record) -> dict[str, Any] | None:
    earlier: Mapping[str, Any] | None = record.get("previous")
    if earlier is None:
        return None
    raw = visible(jsontext.dumps_pretty(earlier["action"])[:ONE_OUTPUT])
    return {"what_differs": visible(str(earlier["what_differs"])), "raw": raw}


def _typed(request: HttpRequest, row: ApprovalRequest, tried: Tried) -> dict[str, Any]:
    """What was typed, and what is wrong with it beside each field."""
    problems = {error["path"]: visible(error["message"]) for error in tried.errors}
    context: dict[str, Any] = {
        "reason": request.POST.get("reason", ""),
        "reason_problem": problems.get("reason", ""),
        "reason_limit": REASON_LIMIT,
    }
    held = policy.policy_of(row)
    if held.form is None:
        return context
    posted = request.method == "POST"
    begun = begun_with(held, request.POST.get(BEGUN)) if posted else ballots.answered(ballots.standing(row)["by"])
    begun = begun if isinstance(begun, dict) else None
    drawn = formfields.fields(held.form, request.POST if posted else None, tried.errors, begun)
    context |= {"fields": drawn, "begun": "" if begun is None else jsontext.canonical(begun)}
    of_fields = [error for error in tried.errors if error["path"].startswith(formfields.ROOT)]
    if tried.problem is None or not of_fields:
        return context
    others = formfields.elsewhere(drawn, of_fields)
    told = "; ".join(["Nothing was decided: the answers need another look", *map(visible, others)])
    places = tuple((one.id, one.label) for one in formfields.flat(drawn) if one.problems)
    move = "What is wrong stands at each field. Then decide again."
    return context | {"problem": replace(tried.problem, sentence=told, next_move=move, places=places)}
