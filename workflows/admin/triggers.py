"""Triggers in the admin: what starts runs while nobody looks, when it did last and does next; and what belongs to it.

Spec files and the store are pages below, with the resets of what lies there. All of them only read, but for a reset's
form and the button of a trigger that is put off.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.dateparse import parse_datetime

from approvals.actors import actor_for_user
from statestore import keys
from statestore.overview import Kept, kept
from workflows.admin.acts import OPERATE, REFUSALS
from workflows.admin.base import Crumb, ReadOnlyAdmin
from workflows.admin.listing import listed
from workflows.admin.resetting import reset_page
from workflows.admin.spec_files import spec_files_page
from workflows.admin.store_page import store_page
from workflows.admin.words import Badge, ago, clipped, data
from workflows.api.errors import failure_of
from workflows.models import WORKSPACE, Run, TriggerState
from workflows.triggers.resets import try_now
from workflows.triggers.standing import Called, Standing, rows_with_last_run, standings, webhooks, without_row

LIST = "admin:workflows_triggerstate_changelist"
VIEW = "workflows.view_run"


class TriggerStateAdmin(ReadOnlyAdmin[TriggerState]):
    """Read only; whoever may see runs may see what starts them."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.has_perm(VIEW))

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        ours = [
            path("files/", wrap(self.files_view), name="workflows_spec_files"),
            path("store/", wrap(self.store_view), name="workflows_store"),
            path("store/<int:pk>/reset/", wrap(self.reset_view), name="workflows_store_reset"),
            path("<int:pk>/try-now/", wrap(self.try_now_view), name="workflows_trigger_try_now"),
        ]
        return ours + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self.need_view(request)
        page = listed(rows_with_last_run(), request.GET, size=self.list_per_page, newest_first=False)
        is_last, is_first = not page.next, not page.first
        rows = [_row(one) for one in standings(page.rows)]
        rows += [_row(one) for one in without_row()] if is_last else []
        return self.page(
            request,
            "workflows/admin/trigger_list.html",
            title="Triggers",
            tab="triggers",
            rows=rows,
            webhooks=[_called(one) for one in webhooks()] if is_first else [],
            listed=page,
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        self.need_view(request)
        return self._trigger(request, object_id)

    def try_now_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """POST alone acts, on the next try that the page showed; whatever else brings one here shows the page."""
        self.need_view(request)
        if not request.user.has_perm(OPERATE):
            raise PermissionDenied(f"The permission {OPERATE} is needed.")
        row = TriggerState.objects.filter(workspace=WORKSPACE, pk=pk).first() if pk < 1 << 63 else None
        if row is None:
            raise Http404("There is no such trigger.")
        if request.method == "POST":
            try:
                mark = _moment(request.POST.get("mark", ""))
                try_now(row.agent_id, actor=actor_for_user(request.user, "admin"), retry_at=mark)
            except REFUSALS as error:
                told = failure_of(error)
                return self._trigger(request, str(pk), problem=str(told.body["error"]), status=told.status)
            messages.success(request, "It is put off no longer: a scheduler that has its file tries it within seconds.")
        return HttpResponseRedirect(reverse("admin:workflows_triggerstate_change", args=[pk]))

    def _trigger(self, request: HttpRequest, object_id: str, *, problem: str = "", status: int = 200) -> HttpResponse:
        numeric = object_id.isascii() and object_id.isdigit() and len(object_id) < 19
        row = rows_with_last_run().filter(pk=object_id).first() if numeric else None
        if row is None:
            raise Http404("There is no such trigger.")
        (standing,) = standings([row])
        cursor, lock = _only(keys.CURSOR, row.agent_id), _only(keys.LOCK, row.agent_id)
        name = clipped(row.agent_id, 100)
        return self.page(
            request,
            "workflows/admin/trigger.html",
            status=status,
            problem=problem[:1].upper() + problem[1:].rstrip("."),
            title=f"{row.get_kind_display().capitalize()} of {name}",
            crumbs=[_crumb()],
            cursor=cursor,
            cursor_value=data(cursor.value) if cursor is not None else None,
            lock=lock,
            may_operate=request.user.has_perm(OPERATE),
            **_row(standing),
        )

    def files_view(self, request: HttpRequest) -> HttpResponse:
        return spec_files_page(self, request, [_crumb()])

    def store_view(self, request: HttpRequest) -> HttpResponse:
        return store_page(self, request, [_crumb()])

    def reset_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Who may set back may see what is set back, or is refused before anything is looked up."""
        self.need_view(request)
        if not request.user.has_perm(OPERATE):
            raise PermissionDenied(f"The permission {OPERATE} is needed.")
        return reset_page(self, request, pk, [_crumb(), ("Store", reverse("admin:workflows_store"))])


def _row(one: Standing) -> dict[str, Any]:
    row = one.row
    return {
        "one": one,
        "row": row,
        "agent": clipped(one.agent_id, 100),
        "when": clipped(one.when, 300) or "not known here",
        "badges": _badges(one),
        "last_run": row.last_run if row is not None else None,
        "fired": ago(row.fired_at) if row is not None and row.fired_at is not None else "",
        "error": clipped(row.error, 2000) if row is not None else "",
    }


def _badges(one: Standing) -> list[Badge]:
    row = one.row
    found = []
    if one.problem:
        found.append(Badge(text="starts nothing", tone="bad" if row is not None else "wait"))
    if row is not None and row.failures:
        found.append(Badge(text=f"failed {row.failures} time" + ("s" if row.failures > 1 else ""), tone="bad"))
    if one.holder:
        found.append(Badge(text="run going", tone="busy"))
    if one.polling_until is not None:
        found.append(Badge(text="polling", tone="busy"))
    if one.late:
        found.append(Badge(text="overdue: is a scheduler running?", tone="bad"))
    if one.overdue and not found:
        found.append(Badge(text="due", tone="wait"))
    return found or [Badge(text="ready", tone="good")]


def _called(one: Called) -> dict[str, Any]:
    run: Run | None = one.last_run
    return {
        "agent": clipped(one.agent_id, 100),
        "when": clipped(one.when, 300),
        "run": run,
        "by": clipped(run.started_by or "nobody", 60) if run is not None else "",
        "age": ago(run.created_at) if run is not None else "",
    }


def _moment(mark: str) -> datetime:
    """The next try as the page showed it; one that no trigger has where it is none."""
    try:
        moment = parse_datetime(mark)
    except ValueError:
        moment = None
    return moment if moment is not None and moment.tzinfo is not None else datetime.min.replace(tzinfo=UTC)


def _only(kind: str, agent_id: str) -> Kept | None:
    """The agent's entry of a kind of which it has one, while its time is not over."""
    found = kept(WORKSPACE, kind, workflow=agent_id, limit=1)
    return found[0] if found and not found[0].expired else None


def _crumb() -> Crumb:
    return ("Triggers", reverse(LIST))
