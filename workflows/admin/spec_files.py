"""The spec files as this process sees them: what is served, and what is broken, with where and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse

from workflows.admin.base import Crumb, ReadOnlyAdmin
from workflows.admin.listing import Listed, with_after
from workflows.admin.words import clipped, visible
from workflows.models import TriggerState
from workflows.registry import BrokenFile, SpecFile, registry
from workflows.triggers import words

PER_PAGE = 100
MOST_SHOWN = 50


def spec_files_page(site: ReadOnlyAdmin[TriggerState], request: HttpRequest, crumbs: Sequence[Crumb]) -> HttpResponse:
    """Broken ones first, all of them; then the served ones by agent. No query is asked for it."""
    site.need_view(request)
    served = sorted(registry().files(), key=lambda file: file.agent_id)
    after = request.GET.get("after", "")
    rest = [file for file in served if file.agent_id > after]
    shown = rest[:PER_PAGE]
    page: Listed[TriggerState] = Listed(
        rows=[],
        next=with_after(request.GET, shown[-1].agent_id) if len(rest) > PER_PAGE else "",
        first=with_after(request.GET, "") if after else "",
    )
    return site.page(
        request,
        "workflows/admin/spec_files.html",
        title="Spec files",
        crumbs=crumbs,
        tab="files",
        served=[_row(file) for file in shown],
        count=len(served),
        broken=[_refused(file) for file in registry().broken()],
        listed=page,
    )


def _row(file: SpecFile) -> dict[str, Any]:
    return {
        "agent": file.agent_id,
        "name": clipped(file.path.name, 120),
        "folder": visible(str(file.path.parent)),
        "hash": file.hash[:12],
        "version": file.spec.version,
        "when": clipped(words.when(file.spec), 200),
        "notes": len(file.notes),
    }


def _refused(file: BrokenFile) -> dict[str, Any]:
    errors = [
        {
            "place": f"line {error.line}, column {error.column}" if error.line is not None else "",
            "where": clipped(error.where, 200),
            "why": clipped(error.beside_place, 600),
        }
        for error in file.errors[:MOST_SHOWN]
    ]
    return {
        "agent": clipped(file.agent_id, 120) if file.agent_id is not None else "",
        "name": clipped(file.path.name, 120),
        "path": visible(str(file.path)),
        "errors": errors,
        "more": max(0, len(file.errors) - MOST_SHOWN),
        "unread": file.unread,
    }
