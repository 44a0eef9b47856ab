"""API tokens in the admin: who has one, and revoking it. Neither a token nor its hash is on any page or address."""

from __future__ import annotations

import hmac
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.crypto import salted_hmac

from approvals.models import ApiToken
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.words import ago, clipped

LIST = "admin:approvals_apitoken_changelist"
REVOKE = "approvals.delete_apitoken"


def mark_of(token: ApiToken) -> str:
    """What names a token in an address: it tells nothing about the token, its hash or when it was made."""
    return salted_hmac("approvals.admin.tokens", str(token.pk), algorithm="sha256").hexdigest()[:32]


class ApiTokenAdmin(ReadOnlyAdmin[ApiToken]):
    """A list, and one act: revoke."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Asked by the revoke page, and when a user is deleted: their tokens go with them."""
        return request.user.has_perm(REVOKE)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        ours = [
            path("", wrap(self.changelist_view), name="approvals_apitoken_changelist"),
            path("<str:mark>/revoke/", wrap(self.revoke_view), name="approvals_apitoken_revoke"),
        ]
        # Django's own addresses of a row hold its primary key, and that is the token's hash: there are none here.
        return ours

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self.need_view(request)
        rows = [
            {
                "mark": mark_of(token),
                "name": clipped(token.name, 100) or "(no name)",
                "user": clipped(token.user.get_username(), 100),
                "token": token,
                "age": ago(token.created),
            }
            for token in ApiToken.objects.select_related("user").order_by("created", "digest")
        ]
        may_revoke = self.has_delete_permission(request)
        return self.page(request, "approvals/admin/tokens.html", title="API tokens", rows=rows, may_revoke=may_revoke)

    def revoke_view(self, request: HttpRequest, mark: str) -> HttpResponse:
        """GET asks, POST revokes."""
        self.need_view(request)
        if not self.has_delete_permission(request):
            raise PermissionDenied(f"The permission {REVOKE} is needed.")
        every = ApiToken.objects.select_related("user")
        token = next((one for one in every if hmac.compare_digest(mark_of(one), mark)), None)
        if token is None:
            raise Http404("There is no such token; it may have been revoked already.")
        name = f"{clipped(token.name, 100) or '(no name)'} of {clipped(token.user.get_username(), 100)}"
        if request.method == "POST":
            token.delete()
            _note(request.user.pk, mark, name)
            messages.success(request, f"The token {name} is revoked. Programs that send it are refused from now on.")
            return HttpResponseRedirect(reverse(LIST))
        crumbs = [("API tokens", reverse(LIST))]
        return self.page(request, "approvals/admin/revoke.html", title="Revoke", crumbs=crumbs, name=name, token=token)


def _note(user_id: Any, mark: str, name: str) -> None:
    """The admin's own log keeps who revoked what."""
    LogEntry.objects.create(
        user_id=user_id,
        content_type=ContentType.objects.get_for_model(ApiToken),
        object_id=mark,
        object_repr=f"API token {name}"[:200],
        action_flag=DELETION,
        change_message="",
    )
