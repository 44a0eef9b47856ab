"""The page behind a signed link: reading decides nothing and uses nothing up; its POST decides as the recipient.

Mail scanners and previews open links, and some fill in forms: nothing is decided unless a box was ticked that they
leave alone. The session of the browser does not matter: the link says who decides, and the policy whether they may.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.views import View

from approvals import looking, policy, records, services, signedlinks
from approvals.actors import actor_for_user
from approvals.admin.refusals import REFUSALS, Problem, problem_of
from approvals.links.page import Tried, context_of
from approvals.models import ApprovalRequest
from approvals.signedlinks import BadLink, Opened
from approvals.typed import typed_answers
from approvals.wording import is_open
from workflows.actors import Actor
from workflows.errors import Invalid, NotAuthenticated

VERDICTS = ("approve", "reject")
CONFIRMED = "yes"
PAGE = "approvals/links/page.html"
CLOSED = "approvals/links/closed.html"

_UNTICKED = Problem(
    sentence="Nothing was decided: the box above the buttons is not ticked.",
    next_move="Tick it to say that it is you, and press again.",
    status=400,
)
_UNCLEAR = Problem(sentence="Nothing was decided.", next_move="Press Approve or Reject.", status=400)

#: Nothing is loaded but our own styles, and nothing runs. Only the origin is told to where the page leads: with
#: `no-referrer`, browsers hide from us where the form came from, and it is refused as a forgery.
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "strict-origin",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
}


class Link(View):
    """`/approvals/link/<token>`."""

    http_method_names = ["get", "head", "post", "options"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        for name, text in HEADERS.items():
            response.headers[name] = text
        # Django would log the path of a refusal, and with it the link.
        response._has_been_logged = True  # type: ignore[attr-defined]  # what django.utils.log itself sets
        return response

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        """Show what is asked, or what became of it."""
        found = _found(request, token)
        return found if isinstance(found, HttpResponse) else _page(request, *found)

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        """Decide as the recipient, once, and lead to what became of it; or show again, with the reason why not."""
        found = _found(request, token)
        if isinstance(found, HttpResponse):
            return found
        row, actor = found[0].request, found[1]
        if request.POST.getlist("verdict") == ["whole"]:
            return _whole(row, actor)
        try:
            problem = _decide(request, row, actor)
        except Invalid as error:
            return _page(request, *found, Tried(problem=problem_of(error), errors=error.extra["errors"]))
        except REFUSALS as error:
            return _page(request, *found, Tried(problem=problem_of(error)))
        if problem is not None:
            return _page(request, *found, Tried(problem=problem))
        return HttpResponseRedirect(request.path)


def _found(request: HttpRequest, token: str) -> tuple[Opened, Actor] | HttpResponse:
    """What the link leads to, and who acts; a page that says no to all else, before anything is told."""
    try:
        opened = signedlinks.opened(token)
    except BadLink:
        return render(request, CLOSED, {"bad": True}, status=404)
    try:
        actor = actor_for_user(opened.user, "link", detail=opened.user.email)
    except NotAuthenticated:
        return render(request, CLOSED, {"why": "this account is not active any more"}, status=403)
    if not policy.may_view(actor):
        return render(request, CLOSED, {"why": f"the permission {policy.VIEW} is needed"}, status=403)
    return opened, actor


def _decide(request: HttpRequest, row: ApprovalRequest, actor: Actor) -> Problem | None:
    """The decision that the page asked for; the problem where it asked for none."""
    given = request.POST.getlist("verdict")
    verdict = given[0] if len(given) == 1 else ""  # a form that says both has decided nothing
    if verdict not in VERDICTS:
        return _UNCLEAR
    if request.POST.getlist("confirm") != [CONFIRMED] and is_open(row):
        return _UNTICKED
    services.decide(
        str(row.key),
        approved=verdict == "approve",
        reason=request.POST.get("reason", ""),
        digest=request.POST.get("digest", ""),
        answers=typed_answers(row, actor, request.POST) if verdict == "approve" else None,
        actor=actor,
        workspace=row.workspace,
    )
    return None


def _whole(row: ApprovalRequest, actor: Actor) -> HttpResponse:
    """All of a clipped action, and the note that this person had it. By POST: a scanner reads every link."""
    record = records.peek(row) if is_open(row) else None
    if record is None or actor.user_id is None:
        return HttpResponse("This request is over.\n", content_type="text/plain", status=404)
    looking.look(row, actor.user_id, record["digest"])
    answer = HttpResponse(looking.whole(record), content_type="application/json")
    answer["Content-Disposition"] = 'attachment; filename="request.json"'
    return answer


def _page(request: HttpRequest, opened: Opened, actor: Actor, tried: Tried | None = None) -> HttpResponse:
    row = ApprovalRequest.objects.select_related("run").get(pk=opened.request.pk)
    context = context_of(request, row, opened.user, actor, tried or Tried())
    problem = context["problem"]
    return render(request, PAGE, context, status=problem.status if problem else 200)
