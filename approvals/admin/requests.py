"""The queue: what waits for a person, oldest first, and what became of the rest."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from approvals.admin import bulk, decision, whole
from approvals.admin.access import may_view
from approvals.admin.queue_page import count_view, queue_page
from approvals.models import ApprovalRequest
from workflows.admin.base import ReadOnlyAdmin


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
            path("count/", wrap(self.count_view), name="approvals_approvalrequest_count"),
            path("<int:pk>/decide/", wrap(self.decide_view), name="approvals_approvalrequest_decide"),
            path("<int:pk>/whole/", wrap(self.whole_view), name="approvals_approvalrequest_whole"),
            path("<int:pk>/outputs/<int:number>/", wrap(self.output_view), name="approvals_approvalrequest_output"),
        ]
        return ours + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self.need_view(request)
        return queue_page(self, request)

    def count_view(self, request: HttpRequest) -> HttpResponse:
        return count_view(self, request)

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

    def whole_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return whole.whole_view(self, request, pk)

    def output_view(self, request: HttpRequest, pk: int, number: int) -> HttpResponse:
        return whole.output_view(self, request, pk, number)

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        return bulk.bulk_view(self, request)
