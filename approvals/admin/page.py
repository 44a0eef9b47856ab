"""What the page of a request says: the action as it is stored, what this person may do with it, what comes after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from approvals import ballots, delegating, editing, formfields, looking, policy, recall, records
from approvals.admin import ahead, difference, drifting, editfields, words
from approvals.admin.history import history_of
from approvals.admin.refusals import Problem
from approvals.changes import Edited
from approvals.drift import drift_of
from approvals.models import ApprovalRequest, Edit, RequestStatus, Vote
from approvals.records import Record
from approvals.services import REASON_LIMIT
from approvals.typed import BEGUN, begun_with
from statestore.clock import now
from workflows import beats, runs
from workflows.actors import Actor
from workflows.admin.acts import OPERATE
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.words import MOST, ago, clipped, data, duration, text_of, visible
from workflows.engine import jsontext
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.models import Run
from workflows.needs import environment_of

QUEUE = "admin:approvals_approvalrequest_changelist"
DECIDE = "admin:approvals_approvalrequest_decide"
WHOLE = "admin:approvals_approvalrequest_whole"
OUTPUT = "admin:approvals_approvalrequest_output"
#: The digest of what the last preview showed.
PREVIEWED = "previewed"
#: A reason of its own: it stands in the form of the decision, whose answers go with it.
GLASS_REASON = "glass_reason"
#: The verdicts whose fields stand in the form of the decision itself.
MAIN = ("", "approve", "reject", "break_glass", "preview", "propose")
#: The characters of all earlier outputs together, and of one.
OUTPUTS, ONE_OUTPUT = 200_000, 20_000


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What a POST wanted and why it did not happen; nothing for a page that is only read."""

    verdict: str = ""
    problem: Problem | None = None
    errors: Sequence[dict[str, str]] = field(default_factory=tuple)
    #: What would run with the edits that were typed, which is shown before anything is decided.
    edited: Edited | None = None


def draw(
    site: ReadOnlyAdmin[ApprovalRequest],
    request: HttpRequest,
    row: ApprovalRequest,
    actor: Actor,
    tried: Tried | None = None,
) -> HttpResponse:
    """The page, with what was typed and what is wrong with it after a POST that changed nothing."""
    tried = tried or Tried()
    record = records.peek(row) if words.is_open(row) else None
    context = _facts(request, row) | _reasons(request, tried)
    if record is None:
        context |= _over(row, actor)
    else:
        votes = ballots.standing(row)
        context |= _form(request, row, tried, context["problem"], ballots.answered(votes["by"]))
        context |= _waiting(request, row, record, actor) | _votes(row, votes)
        if context["reject"].allowed:
            context |= _edits(request, row, record, context["problem"], tried)
    context["history"] = history_of(row)
    problem = context["problem"]
    title = f"{clipped(row.agent_id, 100)}: {clipped(row.step, 100)}"
    return site.page(
        request,
        "approvals/admin/decide.html",
        title=title,
        crumbs=[("Approval requests", reverse(QUEUE))],
        status=problem.status if problem else 200,
        **context,
    )


def _facts(request: HttpRequest, row: ApprovalRequest) -> dict[str, Any]:
    """What is said of a request whatever became of it."""
    return {
        "row": row,
        "badge": words.badge_of(row),
        "step": clipped(row.step, 120),
        "started_by": clipped(row.run.started_by or "nobody", 120),
        "started_ago": ago(row.run.created_at),
        "asked_ago": ago(row.created_at),
        "left": words.left(row),
        "run_link": _run_link(request, row.run),
        "queue": reverse(QUEUE),
    }


def _reasons(request: HttpRequest, tried: Tried) -> dict[str, Any]:
    """The reason that was typed, for the form it was typed into, and what is wrong with the fields of that form."""
    of_main = tried.verdict in MAIN and tried.verdict != "break_glass"
    typed_in = GLASS_REASON if tried.verdict == "break_glass" else "reason"
    problems = {error["path"]: visible(error["message"]) for error in tried.errors}
    problem = tried.problem
    if problem is not None and "reason" in problems:
        problem = replace(problem, places=((_REASONS.get(tried.verdict, "reason"), "Go to the reason"),))
    return {
        "problem": problem,
        "reason_limit": REASON_LIMIT,
        "tried": tried.verdict,
        "reason": request.POST.get("reason", "") if tried.verdict in MAIN else "",
        "reason_problem": problems.get("reason", "") if of_main else "",
        "other_reason": "" if of_main else request.POST.get(typed_in, ""),
        "other_problem": "" if of_main else problems.get("reason", ""),
        "to": request.POST.get("to", ""),
        "to_problem": problems.get("to", ""),
    }


#: The id of the field for the reason, where it is not that of the decision itself.
_REASONS = {
    "break_glass": "glass-reason",
    "delegate": "hand-reason",
    "withdraw": "withdraw-reason",
    "rebind": "rebind-reason",
    "cancel": "cancel-reason",
}


def _form(
    request: HttpRequest, row: ApprovalRequest, tried: Tried, problem: Problem | None, answered: Json | None
) -> dict[str, Any]:
    """The fields of the policy's form; with answers that do not fit it, the problem is told beside each field.

    `answered` is what those gave who approved before: it begins with that.
    """
    held = policy.policy_of(row)
    if held.form is None:
        return {"fields": ()}
    posted = request.method == "POST" and tried.verdict in MAIN
    begun = begun_with(held, request.POST.get(BEGUN)) if posted else answered
    drawn = formfields.fields(held.form, request.POST if posted else None, tried.errors, begun)
    context: dict[str, Any] = {
        "fields": drawn,
        "begun": "" if begun is None else jsontext.canonical(begun),
    }
    of_fields = [error for error in tried.errors if error["path"].startswith(formfields.ROOT)]
    if problem is None or not of_fields:
        return context
    others = formfields.elsewhere(drawn, of_fields)
    told = "; ".join(["Nothing was decided: the answers need another look", *map(visible, others)])
    move = "What is wrong stands at each field. Then decide again."
    places = tuple((one.id, one.label) for one in formfields.flat(drawn) if one.problems)
    return context | {"problem": replace(problem, sentence=told, next_move=move, places=problem.places + places)}


def _run_link(request: HttpRequest, run: Run) -> str:
    if not request.user.has_perm("workflows.view_run"):
        return ""
    return reverse("admin:workflows_run_change", args=[runs.newest(run).pk])


def _over(row: ApprovalRequest, actor: Actor) -> dict[str, Any]:
    """What became of it. The record is gone or about to go, so nothing of its content is shown."""
    again = ApprovalRequest.objects.filter(reopened_from=row.key, workspace=row.workspace).first()
    context: dict[str, Any] = {
        "is_over": True,
        "line": words.line_of(row),
        "ending": visible(words.ending_of(row)),
        "again": reverse(DECIDE, args=[again.pk]) if again is not None else "",
        "was_withdrawn": row.status == RequestStatus.WITHDRAWN,
    }
    if recall.withdrawable(row) and row.recall_until is not None:
        context |= {
            "recall_until": row.recall_until,
            "recall_left": duration(row.recall_until - now()),
            "may_withdraw": policy.may_decide(row, actor),
        }
    return context


def _waiting(request: HttpRequest, row: ApprovalRequest, record: Record, actor: Actor) -> dict[str, Any]:
    """The action as it is stored, and what this person may do with it."""
    yes, no = words.promise_of(row, record)
    held = policy.policy_of(row)
    person = policy.Person(actor)
    person.look_at([row])
    approve, reject = (person.may(row, approve=choice) for choice in (True, False))
    drift = drift_of(row, record)
    return {
        "is_over": False,
        "yes": yes,
        "no": no,
        "is_question": row.kind == "approval",
        "digest": record["digest"],
        "approve": approve,
        "reject": reject,
        "glass": None if drift else person.may(row, break_glass=True),
        "who": policy.in_words(held) if row.policy not in ("", "{}") else "",
        "doubt": row.doubt,
        "advice": visible(str(record.get("advice", {}).get("reason", ""))),
        "reason_needed": held.require_reason,
        "spec_changed": drift is not None,
        "recorded_hash": record["spec_hash"][:12],
        "present_hash": drift.now[:12] if drift and drift.now else "",
        "previous": _previous(record, row),
        "lacking": _lacking(row, record),
        "ahead": ahead.ahead_of(row),
        "hand_to": [user.get_username() for user in delegating.candidates(row, actor)],
        "may_cancel": request.user.has_perm(OPERATE) and row.mode == "gate",
        **(drifting.told(row, drift, actor) if drift else {}),
        **_shown(row, record, actor),
    }


def _shown(row: ApprovalRequest, record: Record, actor: Actor) -> dict[str, Any]:
    """The action and the earlier outputs, in whole or clipped, with where all of it can be had."""
    action, whole = record["action"], looking.whole(record)
    limit = looking.LIMITS["admin"]
    cut = max(0, len(whole) - limit)
    link = reverse(WHOLE, args=[row.pk])
    message = visible(str(record["reason"]))
    if action is None and len(message) > limit:
        message = f"{message[:limit].rstrip()}…"
    outputs = list(record["outputs"].items())
    most = min(ONE_OUTPUT, OUTPUTS // max(1, len(outputs)))
    return {
        "message": message,
        "rows": words.rows_of(row.kind, action, cut=cut, link=link) if action is not None else [],
        "raw": visible(whole[:limit]),
        "clipped": f"clipped, {limit:,} of {len(whole):,} characters" if cut else "",
        "whole_link": link,
        "looked": bool(cut) and looking.has_looked(row, actor.user_id, record["digest"]),
        "outputs": [
            (clipped(step, 120), data(value, most=most, link=reverse(OUTPUT, args=[row.pk, number])))
            for number, (step, value) in enumerate(outputs)
        ],
    }


def _votes(row: ApprovalRequest, votes: dict[str, Any]) -> dict[str, Any]:
    """Who approved so far, in whose place, and what they answered."""
    if votes["needed"] == 1:
        return {"votes": None, "answered": []}
    answered = ballots.answered(votes["by"])
    cast = list(Vote.objects.filter(request=row))
    principals: Any = get_user_model().objects.in_bulk([vote.for_user_id for vote in cast if vote.for_user_id])
    places = {vote.label: principals[vote.for_user_id] for vote in cast if vote.for_user_id in principals}
    voters = [
        {
            "by": clipped(vote["by"], 120),
            "at": vote["at"],
            "stands_for": clipped(places[vote["by"]].get_username(), 120) if vote["by"] in places else "",
        }
        for vote in votes["by"]
    ]
    shown = [(clipped(name, 120), data(value)) for name, value in answered.items()] if answered else []
    return {"votes": votes | {"by": voters}, "answered": shown}


def _edits(
    request: HttpRequest, row: ApprovalRequest, record: Record, problem: Problem | None, tried: Tried
) -> dict[str, Any]:
    """The values that can be changed, what a change would do, and what was changed before."""
    held = policy.policy_of(row)
    if not held.editable:
        return {}
    typed = request.POST if request.method == "POST" and tried.verdict in MAIN else None
    drawn = editfields.fields(editing.offered(row, record), typed, tried.errors)
    places = tuple((one.id, one.label) for one in drawn if one.problems)
    context: dict[str, Any] = {
        "edit_fields": drawn,
        "edits_alone": not held.approvers.four_eyes,
        "may_propose": held.approvers.four_eyes or held.approvers.quorum > 1,
        "standing": _standing(row, record),
    }
    if problem is not None and places:
        context["problem"] = replace(problem, places=problem.places + places)
    if tried.edited is not None:
        context |= {"preview": editfields.shown(tried.edited), "previewed": tried.edited.digest}
    return context


def _standing(row: ApprovalRequest, record: Record) -> dict[str, Any] | None:
    """The edits that are part of what waits, beside what was asked at first, and whose they are."""
    stood = editing.differences(record)
    if not stood:
        return None
    before, now = ({one.path: value for one, value in side if value is not NOTHING} for side in _sides(stood))
    return {
        "difference": difference.between(before, now),
        "by": [
            {"who": clipped(one.label, 120), "at": one.at, "reason": clipped(one.reason, 300)}
            for one in Edit.objects.filter(request=row).order_by("pk")
        ],
    }


def _sides(stood: list[editing.Difference]) -> tuple[list[tuple[editing.Difference, MaybeJson]], ...]:
    return [(one, one.before) for one in stood], [(one, one.after) for one in stood]


def _lacking(row: ApprovalRequest, record: Record) -> list[str]:
    """Variables that the approved call reads and no living worker has: it would fail after the approval."""
    spec = ahead.spec_of(row) if record["tool"] is not None else None
    if spec is None:
        return []  # a stored text that no longer loads is told by the run itself
    return list(beats.lacking(environment_of(spec, record["tool"])))


def _previous(record: Record, row: ApprovalRequest) -> dict[str, Any] | None:
    """The version that was decided before, beside this one, when this is asked again because something changed."""
    earlier = record.get("previous")
    if earlier is None:
        return None
    asked = ApprovalRequest.objects.filter(key=earlier["key"], workspace=row.workspace).first()
    old, new = ({"action": action} for action in (earlier["action"], record["action"]))
    if asked is not None:
        old, new = {"message": asked.reason, **old}, {"message": record["reason"], **new}
    return {
        "what_differs": visible(str(earlier["what_differs"]).removeprefix("nothing: ")),
        "difference": difference.between(old, new),
        "raw": visible(text_of(earlier["action"])[:MOST]),
        "link": reverse(DECIDE, args=[asked.pk]) if asked is not None and asked.status != RequestStatus.OPEN else "",
    }
