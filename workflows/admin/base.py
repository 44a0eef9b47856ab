"""What all our pages in the admin share: nothing is added, changed or deleted, and reading takes no lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest
from django.template.response import TemplateResponse

M = TypeVar("M", bound=Model)

#: Text and address of a page above; an empty address is plain text.
Crumb = tuple[str, str]


class ReadOnlyAdmin(admin.ModelAdmin[M]):
    """Rows to look at. Acts are pages of their own, each with a form that posts to one service.

    Pages that are built by `page` only select: on SQLite they never wait for a writer, and no writer waits for them.
    """

    actions = None
    show_full_result_count = False
    list_per_page = 25
    change_form_template = "workflows/admin/record.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def need_view(self, request: HttpRequest) -> None:
        """PermissionDenied, the same whatever was asked for, before anything is looked up."""
        if not self.has_view_permission(request):
            raise PermissionDenied(f"You need a permission to see {self.opts.verbose_name_plural}.")

    def page(
        self,
        request: HttpRequest,
        template: str,
        *,
        title: str,
        crumbs: Sequence[Crumb] = (),
        status: int = 200,
        **context: Any,
    ) -> TemplateResponse:
        """A page of ours inside the admin's frame."""
        request.current_app = self.admin_site.name  # how Django tells `url` which admin
        frame = {**self.admin_site.each_context(request), "title": title, "crumbs": crumbs, "opts": self.opts}
        response = TemplateResponse(request, template, frame | context, status=status)
        response.headers["Cache-Control"] = "no-store"
        return response
