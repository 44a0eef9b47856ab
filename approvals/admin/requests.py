"""The queue: what waits for a person, oldest first, and what became of the rest."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from approvals import policy
from approvals.admin import bulk, decision, words
from approvals.admin.access import actor_of, may_view
from approvals.models import ApprovalRequest, RequestStatus
from approvals.queue import open_requests
from statestore.clock import DbNow
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.listing import FilterForm, agent_choices, listed
from workflows.admin.words import ago, clipped
from workflows.models import WORKSPACE

WAITING = "waiting"
_STATUSES = {
    WAITING: "Waiting",
    "decided": "Decided",
    "expired": "Expired",
    "cancelled": "Cancelled",
    "all": "All, newest first",
}


class QueueFilter(FilterForm):
    """Filters of the queue; without a status, what waits."""

    status = forms.ChoiceField(choices=[("", _STATUSES[WAITING]), *list(_STATUSES.items())[1:]], required=False)
    agent = forms.ChoiceField(choices=agent_choices, required=False)
    q = forms.CharField(label="Agent or step contains", max_length=100, required=False)


class ApprovalRequestAdmin(ReadOnlyAdmin[ApprovalRequest]):
    """For people who may see requests or decide them. Approve and reject post to the one service."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_view(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_view(request)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        ours = [
            path("bulk/", wrap(self.bulk_view), name="approvals_approvalrequest_bulk"),
            path("<int:pk>/decide/", wrap(self.decide_view), name="approvals_approvalrequest_decide"),
        ]
        return ours + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self.need_view(request)
        filters = QueueFilter(request.GET)
        status = filters.chosen("status") or WAITING
        found = _found(filters, status).select_related("run")
        page = listed(found, request.GET, size=self.list_per_page, newest_first=status != WAITING)
        person = policy.Person(actor_of(request))
        person.look_at(page.rows)
        acts = bulk.ACTS if status == WAITING and person.at_all.allowed else ()
        return self.page(
            request,
            "approvals/admin/queue.html",
            title="Approval requests",
            filters=filters,
            is_waiting=status == WAITING,
            waiting_count=open_requests().count(),
            rows=[_row(row) | {"may": bool(acts) and person.may(row).allowed} for row in page.rows],
            listed=page,
            acts=acts,
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The admin's usual address of a row leads to the page where it is decided."""
        self.need_view(request)
        if not (object_id.isascii() and object_id.isdigit()):
            raise Http404("There is no such request.")
        return HttpResponseRedirect(reverse("admin:approvals_approvalrequest_decide", args=[int(object_id)]))

    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return decision.decide_view(self, request, pk)

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        return bulk.bulk_view(self, request)


def _found(filters: QueueFilter, status: str) -> QuerySet[ApprovalRequest]:
    found: QuerySet[ApprovalRequest] = ApprovalRequest.objects.filter(workspace=WORKSPACE)
    if status == WAITING:
        found = open_requests()
    elif status == "expired":
        unswept = Q(status=RequestStatus.OPEN, expires_at__lte=DbNow())
        found = found.filter(unswept | Q(status=RequestStatus.EXPIRED))
    elif status == "decided":
        found = found.filter(status=RequestStatus.DECIDED)
    elif status == "cancelled":
        found = found.filter(status__in=[RequestStatus.CANCELLED, RequestStatus.WITHDRAWN])
    if agent := filters.chosen("agent"):
        found = found.filter(agent_id=agent)
    if text := filters.chosen("q"):
        found = found.filter(Q(agent_id__icontains=text) | Q(step__icontains=text))
    return found


def _row(request: ApprovalRequest) -> dict[str, Any]:
    return {
        "request": request,
        "step": clipped(request.step, 120),
        "by": clipped(request.run.started_by or "nobody", 80),
        "line": words.line_of(request),
        "badge": words.badge_of(request),
        "left": words.left(request) if request.status == RequestStatus.OPEN else "",
        "age": ago(request.created_at),
    }
