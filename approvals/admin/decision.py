"""The page where a request is read and decided. Its GET changes nothing; its POST calls the service once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from approvals import answers, ballots, policy, records, services
from approvals import formfields as forms
from approvals.admin import words
from approvals.admin.access import actor_of
from approvals.admin.refusals import REFUSALS, Problem, problem_of
from approvals.models import ApprovalRequest, RequestStatus
from approvals.queue import open_requests
from approvals.records import Record
from approvals.services import REASON_LIMIT, Outcome
from workflows import beats, runs
from workflows.actors import Actor
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.words import ago, clipped, data, visible
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.errors import Invalid, Refusal
from workflows.models import WORKSPACE, Run, Status
from workflows.needs import environment_of
from workflows.registry import pinned, present_hash
from workflows.spec.policy_model import Policy

QUEUE = "admin:approvals_approvalrequest_changelist"
DECIDE = "admin:approvals_approvalrequest_decide"
VERDICTS = ("approve", "reject")
BEGUN = "begun"


def decide_view(site: ReadOnlyAdmin[ApprovalRequest], request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows; POST decides and leads to the run that goes on, or shows again with the reason why not."""
    site.need_view(request)
    row = _row(pk)
    actor = actor_of(request)
    if request.method != "POST":
        return _page(site, request, row, actor)
    given = request.POST.getlist("verdict")
    verdict = given[0] if len(given) == 1 else ""  # a form that says both has decided nothing
    if verdict not in VERDICTS:
        unclear = Problem(sentence="Nothing was decided.", next_move="Press Approve or Reject.", status=400)
        return _page(site, request, row, actor, problem=unclear)
    try:
        outcome = services.decide(
            str(row.key),
            approved=verdict == "approve",
            reason=request.POST.get("reason", ""),
            digest=request.POST.get("digest", ""),
            answers=_answers(request, row, actor) if verdict == "approve" else None,
            actor=actor,
        )
    except Invalid as error:
        return _page(site, request, _row(pk), actor, problem=problem_of(error), errors=error.extra["errors"])
    except REFUSALS as error:
        return _page(site, request, _row(pk), actor, problem=problem_of(error))
    return _decided(request, row, outcome)


def _answers(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> Json | None:
    """What was typed into the policy's form. Invalid where it is no value, unless there is more to say than that.

    Nothing is approved then, whoever has to say it: the service takes no text for answers.
    """
    held = policy.policy_of(row)
    if held.form is None:
        return None
    typed, errors = forms.read(held.form, request.POST, _begun(held, request.POST.get(BEGUN)))
    if not errors:
        return typed
    still_open = open_requests(row.workspace).filter(pk=row.pk).exists()
    if still_open and policy.may_decide(row, actor, approve=True).allowed:
        raise Invalid("the answers do not fit the form", errors + _others(held, typed, errors))
    return "not read"


def _begun(held: Policy, text: str | None) -> dict[str, Json] | None:
    """The answers of others with which the page's form began, as it sends them back."""
    if not text:
        return None
    try:
        begun = answers.checked(held, approved=True, answers=jsontext.loads(text))
    except (ValueError, Invalid):
        return None
    return begun if isinstance(begun, dict) else None


def _others(held: Policy, typed: Json, errors: list[dict[str, str]]) -> list[dict[str, str]]:
    """What is wrong with the fields that could be read, so that a person is told everything at once."""
    told = [error["path"] for error in errors]
    try:
        answers.checked(held, approved=True, answers=typed)
    except Invalid as more:
        return [error for error in more.extra["errors"] if not any(forms.is_in(path, error["path"]) for path in told)]
    return []


def _row(pk: int) -> ApprovalRequest:
    row = ApprovalRequest.objects.filter(workspace=WORKSPACE, pk=pk).select_related("run").first()
    if row is None:
        raise Http404("There is no such request.")
    return row


def _decided(request: HttpRequest, row: ApprovalRequest, outcome: Outcome) -> HttpResponse:
    if outcome.votes is not None:
        messages.success(request, words.vote_counts(outcome.votes))
        return HttpResponseRedirect(reverse(QUEUE))
    said = {
        "approved": "Approved. The run goes on from here.",
        "rejected": "Rejected. The run has ended; nothing more is called.",
    }[outcome.decision["outcome"]]
    if row.mode == "record":
        said = f"Kept as {outcome.decision['outcome']}. No run waited for it."
    elif outcome.decision["outcome"] == "rejected" and outcome.run.status != Status.REJECTED:
        said = "Rejected. The run goes on as its workflow says."
    messages.success(request, said)
    if request.user.has_perm("workflows.view_run"):
        return HttpResponseRedirect(reverse("admin:workflows_run_change", args=[outcome.run.pk]))
    return HttpResponseRedirect(reverse(QUEUE))


def _page(
    site: ReadOnlyAdmin[ApprovalRequest],
    request: HttpRequest,
    row: ApprovalRequest,
    actor: Actor,
    problem: Problem | None = None,
    errors: Sequence[dict[str, str]] = (),
) -> HttpResponse:
    record = records.peek(row) if words.is_open(row) else None
    context: dict[str, Any] = {
        "row": row,
        "badge": words.badge_of(row),
        "step": clipped(row.step, 120),
        "started_by": clipped(row.run.started_by or "nobody", 120),
        "started_ago": ago(row.run.created_at),
        "asked_ago": ago(row.created_at),
        "left": words.left(row),
        "problem": problem,
        "run_link": _run_link(request, row.run),
        "queue": reverse(QUEUE),
        "reason": request.POST.get("reason", ""),
        "reason_limit": REASON_LIMIT,
    }
    context |= _over(row) if record is None else _waiting(row, record, actor)
    context |= _form(request, row, problem, errors)
    title = f"{clipped(row.agent_id, 100)}: {clipped(row.step, 100)}"
    return site.page(
        request,
        "approvals/admin/decide.html",
        title=title,
        crumbs=[("Approval requests", reverse(QUEUE))],
        status=problem.status if problem else 200,
        **context,
    )


def _form(
    request: HttpRequest, row: ApprovalRequest, problem: Problem | None, errors: Sequence[dict[str, str]]
) -> dict[str, Any]:
    """The fields of the policy's form; with answers that do not fit it, the problem is told beside each field."""
    held = policy.policy_of(row)
    if held.form is None:
        return {"fields": ()}
    posted = request.method == "POST"
    begun = _begun(held, request.POST.get(BEGUN)) if posted else ballots.answered(ballots.standing(row)["by"])
    drawn = forms.fields(held.form, request.POST if posted else None, errors, begun)
    context: dict[str, Any] = {"fields": drawn, "begun": "" if begun is None else jsontext.canonical(begun)}
    of_fields = [error for error in errors if error["path"].startswith(forms.ROOT)]
    if problem is None or not of_fields:
        return context
    others = forms.elsewhere(drawn, of_fields)
    told = "; ".join(["Nothing was decided: the answers need another look", *map(visible, others)])
    move = "What is wrong stands at each field. Then decide again."
    return context | {"problem": replace(problem, sentence=told, next_move=move)}


def _run_link(request: HttpRequest, run: Run) -> str:
    if not request.user.has_perm("workflows.view_run"):
        return ""
    return reverse("admin:workflows_run_change", args=[runs.newest(run).pk])


def _over(row: ApprovalRequest) -> dict[str, Any]:
    """What became of it. The record is gone or about to go, so nothing of its content is shown."""
    again = ApprovalRequest.objects.filter(reopened_from=row.key, workspace=row.workspace).first()
    return {
        "is_over": True,
        "line": words.line_of(row),
        "ending": visible(words.ending_of(row)),
        "again": reverse(DECIDE, args=[again.pk]) if again is not None else "",
    }


def _waiting(row: ApprovalRequest, record: Record, actor: Actor) -> dict[str, Any]:
    """The action as it is stored, and what this person may do with it."""
    yes, no = words.promise_of(row, record)
    held = policy.policy_of(row)
    approve, reject = (policy.may_decide(row, actor, approve=choice) for choice in (True, False))
    present = present_hash(row.agent_id, row.run.source)
    action = record["action"]
    votes = ballots.standing(row) if held.approvers.quorum > 1 else None
    answered = ballots.answered(votes["by"]) if votes is not None else None
    return {
        "is_over": False,
        "yes": yes,
        "no": no,
        "message": visible(str(record["reason"])),
        "is_question": row.kind == "approval",
        "rows": words.rows_of(row.kind, action) if action is not None else [],
        "outputs": [(clipped(step, 120), data(value)) for step, value in record["outputs"].items()],
        "raw": visible(jsontext.dumps_pretty({"message": record["reason"], "action": action})),
        "digest": record["digest"],
        "approve": approve,
        "reject": reject,
        "who": policy.in_words(held) if row.policy not in ("", "{}") else "",
        "doubt": row.doubt,
        "advice": visible(str(record.get("advice", {}).get("reason", ""))),
        "votes": votes,
        "answered": [(clipped(name, 120), data(value)) for name, value in answered.items()] if answered else [],
        "reason_needed": held.require_reason,
        "spec_changed": present != record["spec_hash"],
        "recorded_hash": record["spec_hash"][:12],
        "present_hash": present[:12] if present else "",
        "previous": _previous(record, row),
        "lacking": _lacking(row, record),
    }


def _lacking(row: ApprovalRequest, record: Record) -> list[str]:
    """Variables that the approved call reads and no living worker has: it would fail after the approval."""
    if record["tool"] is None:
        return []
    try:
        spec = pinned(row.workspace, row.spec_hash)
    except Refusal:
        return []  # a stored text that no longer loads is told by the run itself
    return list(beats.lacking(environment_of(spec, record["tool"])))


def _previous(record: Record, row: ApprovalRequest) -> dict[str, Any] | None:
    """The version that was decided before, when this is asked again because something changed."""
    earlier = record.get("previous")
    if earlier is None:
        return None
    asked = ApprovalRequest.objects.filter(key=earlier["key"], workspace=row.workspace).first()
    return {
        "what_differs": visible(str(earlier["what_differs"])),
        "raw": visible(jsontext.dumps_pretty(earlier["action"])),
        "link": reverse(DECIDE, args=[asked.pk]) if asked is not None and asked.status != RequestStatus.OPEN else "",
    }
