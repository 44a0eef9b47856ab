"""How many requests wait: a card on the admin's first page, and the reader's own number above every page."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.auth.models import AbstractUser
from django.urls import get_script_prefix

from approvals import counting, policy
from approvals.actors import actor_for_user
from approvals.queue import open_requests

register = template.Library()


@register.inclusion_tag("approvals/admin/card.html", takes_context=True)
def waiting_card(context: dict[str, Any]) -> dict[str, Any]:
    """Nothing at all for those who may not see requests."""
    user = context.get("user")
    if user is None or not user.is_active or not policy.may_view(actor_for_user(user, "admin")):
        return {"shown": False}
    return {"shown": True, **_counted(counting.bounded_count(open_requests()))}


@register.inclusion_tag("approvals/admin/waiting.html", takes_context=True)
def waiting_for_me(context: dict[str, Any]) -> dict[str, Any]:
    """Nothing at all for those who may not decide. The socket is offered where the server speaks it."""
    request, user = context.get("request"), context.get("user")
    if request is None or not isinstance(user, AbstractUser) or not user.is_active or not user.has_perm(policy.DECIDE):
        return {"shown": False}
    known: int | None = getattr(request, "_waiting_for_me", None)
    socket = f"{get_script_prefix()}ws/approvals" if hasattr(request, "scope") else ""
    return {"shown": True, "socket": socket, **_counted(counting.waiting_for(user) if known is None else known)}


def _counted(count: int) -> dict[str, Any]:
    return {"count": count, "words": counting.in_words(count)}
