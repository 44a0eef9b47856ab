"""Approve or reject many: first the rows with what was shown, then what became of each.

A row outside the actor's rights and a row that does not exist read the same: they are counted and not named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse

from approvals import policy, records, services
from approvals.admin import words
from approvals.admin.access import need_decide
from approvals.admin.refusals import REFUSALS, problem_of
from approvals.models import ApprovalRequest
from approvals.records import Record
from approvals.services import REASON_LIMIT
from workflows.actors import Actor
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.listing import picked
from workflows.admin.words import Badge, clipped
from workflows.errors import NotAllowed
from workflows.models import WORKSPACE, Status
from workflows.registry import present_hash

LIMIT = 100
LIST = "admin:approvals_approvalrequest_changelist"


@dataclass(frozen=True, kw_only=True)
class Act:
    """One of the two answers, as it is put on a page."""

    name: str
    label: str
    warning: str
    done: str
    tone: str


ACTS = (
    Act(
        name="approve",
        label="Approve",
        warning="Each of these runs does what its line says, and goes on with its workflow.",
        done="Approved. The run goes on.",
        tone="main",
    ),
    Act(
        name="reject",
        label="Reject",
        warning="Each of these runs ends as rejected, unless its workflow goes on after a rejection. What waits here "
        "is not sent.",
        done="Rejected. The run has ended.",
        tone="danger",
    ),
)


class ReasonForm(forms.Form):
    """One reason for all rows; `needed_by` is how many of them are not decided without one."""

    reason = forms.CharField(
        max_length=REASON_LIMIT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Kept in the audit with every row.",
    )

    def __init__(self, given: QueryDict | None, needed_by: int) -> None:
        super().__init__(given)
        if needed_by:
            field = self.fields["reason"]
            field.required = True
            field.label = "Reason (needed)"
            rows = f"{needed_by} of these rows is" if needed_by == 1 else f"{needed_by} of these rows are"
            field.error_messages["required"] = f"Say why, in a few words: {rows} not decided without a reason."


def bulk_view(site: ReadOnlyAdmin[ApprovalRequest], request: HttpRequest) -> HttpResponse:
    """The rows that were ticked, with a place for the reason; once confirmed, what became of each."""
    site.need_view(request)
    actor = need_decide(request)
    act = next((one for one in ACTS if one.name == request.POST.get("act")), None)
    ids = picked(request.POST, LIMIT)
    if request.method != "POST" or act is None or not ids:
        if request.method == "POST":
            messages.warning(request, "Tick at least one request, then choose Approve or Reject.")
        return HttpResponseRedirect(_back(request))
    person = policy.Person(actor)
    rows = _allowed(ids, person)
    confirmed = request.POST.get("confirmed") == "yes"
    form = ReasonForm(request.POST if confirmed else None, sum(_needs_reason(row, act, person) for row in rows))
    if confirmed and form.is_valid():
        results = [result for row in rows if (result := _decide(request, row, act, actor, form.cleaned_data["reason"]))]
        done = sum(not result["problem"] for result in results)
        title = f"{act.label}: {done} of {len(results)} done"
        return _answer(site, request, "results", title, unknown=len(ids) - len(results), results=results)
    return _answer(
        site,
        request,
        "bulk",
        f"{act.label}: {len(rows)} request" + ("" if len(rows) == 1 else "s"),
        status=400 if confirmed else 200,
        unknown=len(ids) - len(rows),
        rows=[_listed(row, act, person) for row in rows],
        act=act,
        form=form,
    )


def _answer(
    site: ReadOnlyAdmin[ApprovalRequest], request: HttpRequest, name: str, title: str, **context: Any
) -> HttpResponse:
    back = _back(request)
    crumbs = [("Approval requests", back)]
    context |= {"back": back, "back_query": back.partition("?")[2]}
    return site.page(request, f"workflows/admin/{name}.html", title=title, crumbs=crumbs, **context)


def _back(request: HttpRequest) -> str:
    """The list with the filters that it had; its page is not kept, as its rows have gone on."""
    query = QueryDict(request.POST.get("back", ""), mutable=True)
    query.pop("after", None)
    return reverse(LIST) + (f"?{query.urlencode()}" if query else "")


def _allowed(ids: Sequence[int], person: policy.Person) -> list[ApprovalRequest]:
    """The requests among these that the person may decide, in the order given."""
    found = ApprovalRequest.objects.filter(workspace=WORKSPACE).select_related("run").in_bulk(ids)
    person.look_at(found.values())
    return [found[pk] for pk in ids if pk in found and person.may(found[pk]).allowed]


def _name(row: ApprovalRequest) -> str:
    return clipped(f"{row.agent_id}: {row.step}", 160)


def _listed(row: ApprovalRequest, act: Act, person: policy.Person) -> dict[str, Any]:
    """One row of the confirmation, with the digest of what its line says.

    One that the person may reject and not approve is shown, and not offered.
    """
    record = records.peek(row) if words.is_open(row) else None
    verdict = person.may(row, approve=act.name == "approve")
    offered = verdict.allowed or record is None
    return {
        "pk": row.pk,
        "offered": offered,
        "name": _name(row),
        "line": words.line_of(row, record),
        "badge": words.badge_of(row),
        "digest": record["digest"] if record is not None else "",
        "problem": _foreseen(row, record, act) if offered else f"You may not approve this: {verdict.rule}. Left out.",
    }


def _foreseen(row: ApprovalRequest, record: Record | None, act: Act) -> str:
    if record is None:
        return f"This is over, and will be refused: {words.ending_of(row)}."
    if act.name == "approve" and present_hash(row.agent_id, row.run.source) != record["spec_hash"]:
        return "Its spec changed since the run started, so approving will be refused. Reject works."
    if act.name == "approve" and policy.policy_of(row).form is not None:
        return "It has a form, so it is not approved from here: open it to answer."
    return ""


def _needs_reason(row: ApprovalRequest, act: Act, person: policy.Person) -> bool:
    """Whether this row would be refused for the want of a reason."""
    held = policy.policy_of(row)
    if not words.is_open(row) or not person.may(row, approve=act.name == "approve").allowed:
        return False
    if act.name == "approve":
        return held.require_reason == "always" and held.form is None
    return held.require_reason != "never"


def _decide(request: HttpRequest, row: ApprovalRequest, act: Act, actor: Actor, reason: str) -> dict[str, Any] | None:
    """What became of this row; None when it turned out to be none of the actor's business."""
    told = {"name": _name(row), "link": reverse("admin:approvals_approvalrequest_decide", args=[row.pk])}
    if act.name == "approve" and policy.policy_of(row).form is not None:
        unread = "It has a form: open it to answer. Nothing was changed."
        return told | {"problem": unread, "told": unread, "badge": Badge(text="refused", tone="bad")}
    try:
        outcome = services.decide(
            str(row.key),
            approved=act.name == "approve",
            reason=reason,
            digest=request.POST.get(f"digest-{row.pk}", ""),
            actor=actor,
        )
    except NotAllowed:
        return None
    except REFUSALS as error:
        problem = problem_of(error)
        refused = {"problem": problem.sentence, "told": f"{problem.sentence}. {problem.next_move}"}
        return told | refused | {"badge": Badge(text="refused", tone="bad")}
    if outcome.votes is not None:
        counted = {"problem": "", "told": words.vote_counts(outcome.votes)}
        return told | counted | {"badge": Badge(text="counted", tone="wait")}
    done = act.done
    if row.mode == "record":
        done = f"Kept as {outcome.decision['outcome']}. No run waited for it."
    elif act.name == "reject" and outcome.run.status != Status.REJECTED:
        done = "Rejected. The run goes on as its workflow says."
    return told | {"problem": "", "told": done, "badge": Badge(text="done", tone="good")}
