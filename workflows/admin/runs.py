"""Runs in the admin: a chain once, by its newest run; a page for each; an operator's acts on one or on many."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path, reverse

from approvals import policy
from approvals.actors import actor_for_user
from workflows.admin.acts import ACTS, BULK, OPERATE, Act, drawn, perform
from workflows.admin.base import Crumb, ReadOnlyAdmin
from workflows.admin.listing import FilterForm, agent_choices, listed, picked
from workflows.admin.run_page import told
from workflows.admin.words import Badge, ago, badge, clipped
from workflows.models import WORKSPACE, Run, Status

LIST = "admin:workflows_run_changelist"
REFRESH_SECONDS = 3
BULK_LIMIT = 100
_SEARCHED = 50
_STATUSES = {shown.text: shown.text for shown in (badge(status) for status in Status if status != Status.RESUMED)}


class RunFilter(FilterForm):
    """Filters of the list of runs."""

    status = forms.ChoiceField(choices=[("", "Any status"), *_STATUSES.items()], required=False)
    agent = forms.ChoiceField(choices=agent_choices, required=False)
    q = forms.RegexField(
        regex=r"^\s*[0-9a-fA-F-]{4,36}\s*$",
        label="Run id",
        required=False,
        error_messages={"invalid": "An id is 4 to 36 of the characters 0-9, a-f and -; its beginning is enough."},
    )


class ReasonForm(forms.Form):
    """Why an operator acts; kept in the audit."""

    reason = forms.CharField(
        max_length=4000, required=False, widget=forms.Textarea(attrs={"rows": 3}), help_text="Kept in the audit."
    )

    def __init__(self, act: Act, given: QueryDict | None = None) -> None:
        super().__init__(given)
        if act.needs_reason:
            field = self.fields["reason"]
            field.required = True
            field.error_messages["required"] = "Say why, in a few words."


class RunAdmin(ReadOnlyAdmin[Run]):
    """Read only; acts post to the services."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        ours = [
            path("bulk/", wrap(self.bulk_view), name="workflows_run_bulk"),
            path("<int:pk>/act/<str:name>/", wrap(self.act_view), name="workflows_run_act"),
        ]
        return ours + super().get_urls()

    # The list ------------------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self.need_view(request)
        filters = RunFilter(request.GET)
        page = listed(_found(filters), request.GET, size=self.list_per_page, newest_first=True)
        earlier = _earlier(page.rows)
        rows = [
            {
                "run": run,
                "short": str(run.uuid)[:8],
                "badge": badge(run.status),
                "step": clipped(run.step, 120),
                "by": clipped(run.started_by, 60),
                "age": ago(run.created_at),
                "error": clipped(run.error, 160),
                "earlier": earlier.get(run.root_id or 0, 0),
            }
            for run in page.rows
        ]
        may_operate = request.user.has_perm(OPERATE)
        acts = [ACTS[name] for name in BULK] if may_operate else []
        return self.page(
            request, "workflows/admin/run_list.html", title="Runs", filters=filters, rows=rows, listed=page, acts=acts
        )

    # A run ---------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        self.need_view(request)
        return self._run_page(request, _run(object_id))

    def _run_page(self, request: HttpRequest, run: Run) -> HttpResponse:
        working = run.status in (Status.QUEUED, Status.RUNNING)
        refreshing = working and request.GET.get("refresh") != "off"
        actor = actor_for_user(request.user, "admin")
        return self.page(
            request,
            "workflows/admin/run.html",
            title=f"Run of {clipped(run.agent_id, 100)}",
            crumbs=[_runs_crumb()],
            acts=drawn(run) if request.user.has_perm(OPERATE) else [],
            may_view_requests=policy.may_view(actor),
            working=working,
            refresh_seconds=REFRESH_SECONDS if refreshing else None,
            **told(run),
        )

    # Acts ----------------------------------------------------------------------------------------------------

    def act_view(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        """GET asks for the reason; POST acts, once."""
        _need_operate(request)
        act = ACTS.get(name)
        if act is None:
            raise Http404
        run = _run(str(pk))
        form = ReasonForm(act, request.POST if request.method == "POST" else None)
        problem, status = "", 200
        if request.method == "POST" and form.is_valid():
            answer = perform(act, run, actor_for_user(request.user, "admin"), form.cleaned_data["reason"])
            if not answer.problem:
                messages.success(request, act.done)
                return HttpResponseRedirect(_after(request, answer.run))
            problem, status, run = answer.problem, answer.status, answer.run
        elif request.method == "POST":
            status = 400
        crumbs = [_runs_crumb(), (f"Run of {clipped(run.agent_id, 100)}", _address(run))]
        return self.page(
            request,
            "workflows/admin/act.html",
            title=act.label,
            crumbs=crumbs,
            status=status,
            act=act,
            run=run,
            badge=badge(run.status),
            step=clipped(run.step, 120),
            possible=act in drawn(run),
            form=form,
            problem=problem,
        )

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        """First the rows that were ticked, with a place for the reason; then what became of each."""
        _need_operate(request)
        self.need_view(request)
        if request.method != "POST":
            return HttpResponseRedirect(reverse(LIST))
        act = ACTS.get(request.POST.get("act", ""))
        if act is None or act.name not in BULK:
            messages.warning(request, "Choose what to do with the runs that you ticked.")
            return HttpResponseRedirect(reverse(LIST))
        ids = picked(request.POST, BULK_LIMIT)
        found = Run.objects.filter(workspace=WORKSPACE).in_bulk(ids)
        runs = [found[pk] for pk in ids if pk in found]
        if not runs:
            messages.warning(request, "Tick at least one run.")
            return HttpResponseRedirect(reverse(LIST))
        confirmed = request.POST.get("confirmed") == "yes"
        form = ReasonForm(act, request.POST if confirmed else None)
        common: dict[str, Any] = {
            "crumbs": [_runs_crumb()],
            "act": act,
            "unknown": len(ids) - len(runs),
            "back": reverse(LIST),
        }
        if confirmed and form.is_valid():
            actor = actor_for_user(request.user, "admin")
            results = [_result(act, run, actor, form.cleaned_data["reason"]) for run in runs]
            done = sum(not result["problem"] for result in results)
            title = f"{act.label}: {done} of {len(results)} done"
            return self.page(request, "workflows/admin/results.html", title=title, results=results, **common)
        return self.page(
            request,
            "workflows/admin/bulk.html",
            title=f"{act.label}: {len(runs)} run" + ("s" if len(runs) > 1 else ""),
            status=400 if confirmed else 200,
            rows=[_row(run, act) for run in runs],
            form=form,
            **common,
        )


def _found(filters: RunFilter) -> QuerySet[Run]:
    """The newest run of every chain that the filters leave."""
    found = Run.objects.filter(workspace=WORKSPACE, resumed_as__isnull=True)
    if wanted := filters.chosen("status"):
        found = found.filter(status__in=[status for status in Status if badge(status).text == wanted])
    if agent := filters.chosen("agent"):
        found = found.filter(agent_id=agent)
    if text := filters.chosen("q").strip():
        named = Run.objects.filter(_named(text), workspace=WORKSPACE).order_by("-pk")[:_SEARCHED]
        roots = [run.root_id_or_own for run in named]
        found = found.filter(Q(pk__in=roots) | Q(root_id__in=roots))
    return found


def _named(text: str) -> Q:
    try:
        return Q(uuid=uuid.UUID(text))
    except ValueError:
        return Q(uuid__istartswith=text)


def _earlier(runs: list[Run]) -> dict[int, int]:
    """By root: how many runs of the chain came before its newest."""
    roots = [run.root_id for run in runs if run.root_id]
    counted = Run.objects.filter(root_id__in=roots).order_by().values_list("root_id").annotate(count=Count("pk"))
    return {int(root): count for root, count in counted if root is not None}


def _need_operate(request: HttpRequest) -> None:
    if not request.user.has_perm(OPERATE):
        raise PermissionDenied(f"The permission {OPERATE} is needed.")


def _run(pk: str) -> Run:
    run = Run.objects.filter(workspace=WORKSPACE, pk=pk).first() if pk.isascii() and pk.isdigit() else None
    if run is None:
        raise Http404("There is no such run.")
    return run


def _address(run: Run) -> str:
    return reverse("admin:workflows_run_change", args=[run.pk])


def _after(request: HttpRequest, run: Run) -> str:
    """The run's page, or the start for somebody who may operate runs and not see them."""
    return _address(run) if request.user.has_perm("workflows.view_run") else reverse("admin:index")


def _runs_crumb() -> Crumb:
    return ("Runs", reverse(LIST))


def _name(run: Run) -> str:
    return clipped(f"{run.agent_id} {run.uuid}", 160)


def _row(run: Run, act: Act) -> dict[str, Any]:
    possible = act in drawn(run)
    return {
        "pk": run.pk,
        "name": _name(run),
        "line": clipped(run.error or run.step, 160),
        "badge": badge(run.status),
        "problem": "" if possible else f"It is {badge(run.status).text}: this will be refused.",
    }


def _result(act: Act, run: Run, actor: Any, reason: str) -> dict[str, Any]:
    answer = perform(act, run, actor, reason)
    return {
        "name": _name(run),
        "link": _address(answer.run),
        "problem": answer.problem,
        "told": answer.problem or act.done,
        "badge": Badge(text="refused", tone="bad") if answer.problem else Badge(text="done", tone="good"),
    }
