"""`POST /slack/interactions`, and the page on which a person links a Slack account (design 5.2)."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from rest_framework.request import Request
from rest_framework.response import Response

from approvals import slack_links
from approvals.actors import actor_for_user
from approvals.slack import acts
from approvals.slack.payloads import Click, read
from approvals.slack.replies import post_later
from approvals.slack.signature import check_signature
from statestore.patience import patience
from workflows.api.endpoint import Endpoint
from workflows.visible import clipped

#: Slack waits three seconds for the acknowledgement.
LOCK_SECONDS = 1.2


class Interactions(Endpoint):
    """The signature over the raw bytes, the shape, the decision, the acknowledgement; all else comes after it."""

    authentication_classes = []
    query = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        if self.body_error is not None:
            raise self.body_error

    def post(self, request: Request) -> Response:
        raw = request._request.body
        check_signature(request._request, raw)
        asked = read(request._request.content_type, raw)
        try:
            with patience(LOCK_SECONDS):
                reply = acts.click(asked) if isinstance(asked, Click) else acts.sent(asked)
        except (OperationalError, InterfaceError) as error:
            reply = acts.away(error, asked)
        post_later(asked.response_url, reply.messages)
        return Response(reply.body or None)


@method_decorator(never_cache, name="dispatch")
@method_decorator(login_required, name="dispatch")
class LinkAccount(View):
    """GET asks, POST links the account to whoever is signed in."""

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        return self._page(request, token)

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        return self._page(request, token)

    def _page(self, request: HttpRequest, token: str) -> HttpResponse:
        try:
            account = slack_links.account_in(token)
        except slack_links.LinkOver as problem:
            return render(request, "approvals/slack/link.html", {"problem": problem.message}, status=400)
        before = slack_links.user_of(account)
        done = request.method == "POST"
        if done:
            slack_links.link(account, request.user, actor=actor_for_user(request.user, "admin"))
        context = {
            "name": clipped(account.name, 100) or account.slack_id,
            "detail": account.detail,
            "user": request.user,
            "before": before if before is not None and before.pk != request.user.pk else None,
            "done": done,
        }
        return render(request, "approvals/slack/link.html", context)
