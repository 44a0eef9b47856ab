"""The page where a request is read and decided. Its GET changes nothing; its POST calls one service once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from approvals import delegating, editing, policy, rebinding, recall, records, services
from approvals.admin import editfields, words
from approvals.admin.access import actor_of
from approvals.admin.page import DECIDE, GLASS_REASON, PREVIEWED, QUEUE, Tried, draw
from approvals.admin.refusals import REFUSALS, Problem, problem_of
from approvals.changes import Edited
from approvals.errors import ActionChanged, ApprovalNotFound
from approvals.models import ApprovalRequest
from approvals.queue import decision_of
from approvals.services import Outcome
from approvals.typed import typed_answers
from workflows.actors import Actor
from workflows.admin.acts import OPERATE
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.words import clipped
from workflows.engine.values import Json
from workflows.errors import Invalid, NotAllowed, SpecChanged
from workflows.models import WORKSPACE, Status
from workflows.runs import cancel_run

#: What a POST did; an `Edited` did nothing: the change is to be seen before it is decided.
Act: TypeAlias = Callable[[HttpRequest, ApprovalRequest, Actor], HttpResponse | Edited]


def decide_view(site: ReadOnlyAdmin[ApprovalRequest], request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows; POST acts and leads to the run that goes on, or shows again with the reason why not."""
    site.need_view(request)
    row = find_row(pk)
    actor = actor_of(request)
    if request.method != "POST":
        return draw(site, request, row, actor)
    given = request.POST.getlist("verdict")
    verdict = given[0] if len(given) == 1 else ""  # a form that says both has decided nothing
    act = ACTS.get(verdict)
    if act is None:
        unclear = Problem(sentence="Nothing was decided.", next_move="Press Approve or Reject.", status=400)
        return draw(site, request, row, actor, Tried(problem=unclear))
    try:
        answer = act(request, row, actor)
        if isinstance(answer, HttpResponse):
            return answer
        tried = Tried(verdict=verdict, edited=answer)
    except Invalid as error:
        tried = Tried(verdict=verdict, problem=problem_of(error), errors=error.extra["errors"])
    except REFUSALS as error:
        tried = Tried(verdict=verdict, problem=problem_of(error))
    return draw(site, request, find_row(pk), actor, tried)


def find_row(pk: int) -> ApprovalRequest:
    row = ApprovalRequest.objects.filter(workspace=WORKSPACE, pk=pk).select_related("run").first()
    if row is None:
        raise Http404("There is no such request.")
    return row


# Acts --------------------------------------------------------------------------------------------------------


def _approve(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> HttpResponse | Edited:
    given = typed_answers(row, actor, request.POST)
    edits, unseen = _edits(request, row, actor)
    if unseen is not None:
        return unseen
    return _decided(request, row, _decide(request, row, actor, approved=True, answers=given, edits=edits))


def _reject(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> HttpResponse:
    return _decided(request, row, _decide(request, row, actor, approved=False))


def _break_glass(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> HttpResponse | Edited:
    edits, unseen = _edits(request, row, actor)
    if unseen is not None:
        return unseen
    given = typed_answers(row, actor, request.POST, break_glass=True)
    why = request.POST.get(GLASS_REASON, "")
    return _decided(
        request,
        row,
        _decide(request, row, actor, approved=True, reason=why, break_glass=True, answers=given, edits=edits),
    )


def _preview(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> Edited:
    """What would run with what was typed. Nothing is decided and nothing is kept."""
    _, edited = _edits(request, row, actor, again=True)
    if edited is not None:
        return edited
    policy.need(policy.may_decide(row, actor))
    if not words.is_open(row):
        raise ApprovalNotFound(str(row.key), decision_of(str(row.key), row.workspace))
    raise Invalid("nothing is changed yet: type another value first", [])


def _propose(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> HttpResponse | Edited:
    edits, unseen = _edits(request, row, actor)
    if unseen is not None:
        return unseen
    editing.edit_request(
        str(row.key),
        edits=edits or {},
        actor=actor,
        reason=request.POST.get("reason", ""),
        digest=request.POST.get("digest", ""),
    )
    messages.success(request, "Your change stands. Approvals given before it are void; others decide what you see now.")
    return _here(row)


def _decide(request: HttpRequest, row: ApprovalRequest, actor: Actor, **asked: Any) -> Outcome:
    asked = {"reason": request.POST.get("reason", ""), "digest": request.POST.get("digest", "")} | asked
    return services.decide(str(row.key), actor=actor, **asked)


def _hand_on(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> HttpResponse:
    to = request.POST.get("to", "").strip()
    delegating.delegate(str(row.key), to=to, actor=actor, reason=request.POST.get("reason", ""))
    messages.success(request, f"Handed to {clipped(to, 120)}, who may decide it from now on, as you still may.")
    return _here(row)


def _withdraw(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> HttpResponse:
    again = recall.withdraw(str(row.key), actor=actor, reason=request.POST.get("reason", ""))
    messages.success(request, "The approval was taken back. Nothing was called; the request is open again.")
    return _here(again)


def _rebind(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> HttpResponse:
    why, shown = request.POST.get("reason", ""), request.POST.get("digest", "")
    rebinding.rebind(str(row.key), actor=actor, reason=why, digest=shown)
    messages.success(request, "Bound to the changed spec. What is shown now is what would run; somebody decides it.")
    return _here(row)


def _cancel(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> HttpResponse:
    if not request.user.has_perm(OPERATE):
        rule = f"the permission {OPERATE} is needed"
        raise NotAllowed(rule, rule=rule)
    cancel_run(row.run, actor=actor, reason=request.POST.get("reason", "").strip())
    messages.success(request, "The run was cancelled. Nobody can decide its request any more.")
    return _here(row)


def _here(row: ApprovalRequest) -> HttpResponse:
    return HttpResponseRedirect(reverse(DECIDE, args=[row.pk]))


#: By the value of the button that was pressed.
ACTS: Mapping[str, Act] = {
    "approve": _approve,
    "reject": _reject,
    "preview": _preview,
    "propose": _propose,
    "break_glass": _break_glass,
    "delegate": _hand_on,
    "withdraw": _withdraw,
    "rebind": _rebind,
    "cancel": _cancel,
}


# What was typed, and what became of it -----------------------------------------------------------------------


def _edits(
    request: HttpRequest, row: ApprovalRequest, actor: Actor, *, again: bool = False
) -> tuple[dict[str, Json] | None, Edited | None]:
    """What was typed otherwise than it stands, and what would run with it unless the page had shown just that.

    Nothing is read of a request that is over, and nothing is rendered for whom the service refuses: it says why.
    """
    record = records.peek(row) if policy.policy_of(row).editable and words.is_open(row) else None
    if record is None or not policy.may_decide(row, actor).allowed:
        return None, None
    edits, errors = editfields.read(editing.offered(row, record), request.POST)
    if errors:
        raise Invalid("what was typed does not fit", errors)
    if not edits:
        return None, None
    shown, present = request.POST.get("digest", ""), services.present_hash(row)
    if present != record["spec_hash"]:
        raise SpecChanged(recorded=record["spec_hash"], present=present)
    if shown != record["digest"]:
        raise ActionChanged(shown=shown, present=record["digest"])
    edited = editing.preview(row, record, edits)
    seen = not again and request.POST.get(PREVIEWED) == edited.digest
    return edits, None if seen else edited


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
    decided = find_row(row.pk)
    if recall.withdrawable(decided):
        messages.success(request, "Approved. It can be taken back for a while; the run goes on after that.")
        return _here(decided)
    messages.success(request, said)
    if request.user.has_perm("workflows.view_run"):
        return HttpResponseRedirect(reverse("admin:workflows_run_change", args=[outcome.run.pk]))
    return HttpResponseRedirect(reverse(QUEUE))
