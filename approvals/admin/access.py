"""Who looks and who acts: the policy's own answers, for the lists, the pages and the buttons."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from approvals import policy
from approvals.actors import actor_for_user
from workflows.actors import Actor


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in user as the one who acts here."""
    return actor_for_user(request.user, "admin")


def may_view(request: HttpRequest) -> bool:
    """Asked by the admin for every page, and several times a page: the answer stays for the request."""
    known: bool | None = getattr(request, "_may_view_requests", None)
    if known is None:
        user = request.user
        known = user.is_authenticated and user.is_active and policy.may_view(actor_of(request))
        request._may_view_requests = known  # type: ignore[attr-defined]  # a note on this request alone
    return known


def need_decide(request: HttpRequest) -> Actor:
    """The actor; PermissionDenied, the same for every request, before any look-up."""
    actor = actor_of(request)
    verdict = policy.may_decide_at_all(actor)
    if not verdict.allowed:
        raise PermissionDenied(verdict.rule[:1].upper() + verdict.rule[1:] + ".")
    return actor
