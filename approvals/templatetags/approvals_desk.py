"""The card on the admin's first page: how many requests wait, for those who may see them."""

from __future__ import annotations

from typing import Any

from django import template

from approvals import policy
from approvals.actors import actor_for_user
from approvals.queue import open_requests

register = template.Library()


@register.inclusion_tag("approvals/admin/card.html", takes_context=True)
def waiting_card(context: dict[str, Any]) -> dict[str, Any]:
    """Nothing at all for those who may not see requests."""
    user = context.get("user")
    if user is None or not user.is_active or not policy.may_view(actor_for_user(user, "admin")):
        return {"shown": False}
    return {"shown": True, "count": open_requests().count()}
