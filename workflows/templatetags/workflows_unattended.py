"""What staff should see wherever runs are listed: that a spec file is broken; and where to look at what runs alone."""

from __future__ import annotations

from typing import Any

from django import template

from workflows.registry import registry
from workflows.visible import clipped

register = template.Library()

_VIEW = "workflows.view_run"
_MOST_NAMED = 3


@register.inclusion_tag("workflows/admin/broken_specs.html", takes_context=True)
def broken_specs(context: dict[str, Any]) -> dict[str, Any]:
    """Nothing where all files are good, and for those who may not see runs."""
    if not _may_see(context):
        return {"count": 0}
    return _broken()


@register.inclusion_tag("workflows/admin/unattended_card.html", takes_context=True)
def unattended_card(context: dict[str, Any]) -> dict[str, Any]:
    """For the first page of the admin."""
    shown = _may_see(context)
    return {"shown": shown, **(_broken() if shown else {})}


def _may_see(context: dict[str, Any]) -> bool:
    user = context.get("user")
    return user is not None and user.is_active and user.has_perm(_VIEW)


def _broken() -> dict[str, Any]:
    found = registry().broken()
    named = [clipped(file.path.name, 80) for file in found[:_MOST_NAMED]]
    return {"count": len(found), "names": named, "more": len(found) - len(named)}
