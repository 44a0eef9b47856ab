"""The audit in the admin: read only, newest first; a page says whether the entry is sealed and still as it was."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from approvals import audit
from approvals.errors import in_words
from approvals.models import AuditEntry
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.listing import FilterForm, agent_choices, listed
from workflows.admin.words import Badge, clipped, visible
from workflows.models import WORKSPACE, Run
from workflows.times import rfc3339

LIST = "admin:approvals_auditentry_changelist"
ACTS = (
    "decide",
    "cancel",
    "expire",
    "escalate",
    "retry",
    "give_up",
    "vote",
    "edit",
    "delegate",
    "away",
    "back",
    "rebind",
    "withdraw",
    "reset",
    "repair",
    "link",
    "unlink",
)
_FIELDS = (
    ("Workspace", "workspace"),
    ("Agent", "agent_id"),
    ("Step", "step"),
    ("Actor", "actor"),
    ("Actor's detail", "actor_detail"),
    ("Surface", "surface"),
    ("Reason", "reason"),
    ("Digest", "digest"),
    ("Spec hash", "spec_hash"),
    ("Answers", "answers"),
    ("Policy", "policy"),
    ("Details", "details"),
)


class AuditFilter(FilterForm):
    """Filters of the audit."""

    act = forms.ChoiceField(choices=[("", "Any act"), *((act, act) for act in ACTS)], required=False)
    agent = forms.ChoiceField(choices=agent_choices, required=False)
    actor = forms.CharField(label="Actor (exact name)", max_length=200, required=False)


class AuditEntryAdmin(ReadOnlyAdmin[AuditEntry]):
    """Append only: there is nothing to press."""

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self.need_view(request)
        filters = AuditFilter(request.GET)
        page = listed(_found(filters), request.GET, size=self.list_per_page, newest_first=True)
        rows = [
            {
                "entry": entry,
                "told": _told(entry),
                "step": clipped(entry.step, 120),
                "reason": clipped(entry.reason, 160),
                "badge": _seal_badge(entry),
            }
            for entry in page.rows
        ]
        return self.page(
            request, "approvals/admin/audit_list.html", title="Audit", filters=filters, rows=rows, listed=page
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        self.need_view(request)
        numeric = object_id.isascii() and object_id.isdigit()
        entry = AuditEntry.objects.filter(workspace=WORKSPACE, pk=object_id).first() if numeric else None
        if entry is None:
            raise Http404("There is no such entry.")
        facts = [(label, visible(str(getattr(entry, name)))) for label, name in _FIELDS if getattr(entry, name)]
        return self.page(
            request,
            "approvals/admin/audit_entry.html",
            title=f"Audit entry {entry.pk}",
            crumbs=[("Audit", reverse(LIST))],
            entry=entry,
            told=_told(entry),
            facts=facts,
            badge=_seal_badge(entry),
            intact=audit.own_hash(entry) == entry.own_hash and _link_holds(entry),
            run_link=_run_link(request, entry.successor or entry.run),
        )


def _found(filters: AuditFilter) -> QuerySet[AuditEntry]:
    found = AuditEntry.objects.filter(workspace=WORKSPACE)
    for name, field in (("act", "act"), ("agent", "agent_id"), ("actor", "actor")):
        if wanted := filters.chosen(name):
            found = found.filter(**{field: wanted})
    return found


def _told(entry: AuditEntry) -> str:
    told = {"outcome": audit.done_in_words(entry), "by": entry.actor, "at": rfc3339(entry.at), "surface": entry.surface}
    return clipped(in_words(told), 240)


def _seal_badge(entry: AuditEntry) -> Badge:
    if entry.seal_no is None:
        return Badge(text="not sealed yet", tone="wait")
    return Badge(text=f"sealed as no. {entry.seal_no}", tone="good")


def _link_holds(entry: AuditEntry) -> bool:
    """Whether the entry's own link fits it; `audit verify` checks the whole chain."""
    if entry.seal_no is None:
        return True
    return entry.sealed_hash == audit.sealed_hash(entry.seal_no, entry.previous, entry.own_hash)


def _run_link(request: HttpRequest, uuid: str) -> str:
    if not request.user.has_perm("workflows.view_run"):
        return ""
    run = Run.objects.filter(workspace=WORKSPACE, uuid=uuid).first() if uuid else None
    return reverse("admin:workflows_run_change", args=[run.pk]) if run is not None else ""
