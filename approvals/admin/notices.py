"""The outbox in the admin: what left, what waits, what failed and why; one act: try again."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from approvals.models import Notice, NoticeStatus
from approvals.notices import sender
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.words import ago, clipped
from workflows.engine import jsontext

OPERATE = "workflows.operate_run"


class NoticeAdmin(ReadOnlyAdmin[Notice]):
    """Read only but for notices that were given up. The name of a token's variable is shown, never a token."""

    list_display = [
        "about",
        "shown_request",
        "channel",
        "shown_place",
        "status",
        "attempts",
        "shown_next",
        "why_not",
    ]
    list_filter = ["status", "channel", "about"]
    list_select_related = ["request"]
    ordering = ["-pk"]
    actions = ["try_again"]  # type: ignore[assignment]  # the one page of ours with an action in the list
    fields = (
        "about",
        "shown_request",
        "channel",
        "shown_place",
        "status",
        "attempts",
        "due_at",
        "sent_at",
        "created_at",
        "shown_whole_error",
    )
    readonly_fields = ("shown_request", "shown_place", "shown_whole_error")

    @admin.display(description="Request")
    def shown_request(self, notice: Notice) -> str:
        return clipped(str(notice.request), 100) if notice.request is not None else "-"

    @admin.display(description="To")
    def shown_place(self, notice: Notice) -> str:
        address = jsontext.loads(notice.address)
        return clipped(" ".join(f"{name}: {value}" for name, value in address.items()), 120)

    @admin.display(description="Next try")
    def shown_next(self, notice: Notice) -> str:
        if notice.status != NoticeStatus.WAITING:
            return f"sent {ago(notice.sent_at)}" if notice.sent_at is not None else "-"
        return f"{notice.due_at:%Y-%m-%d %H:%M:%S} UTC"

    @admin.display(description="Why not")
    def why_not(self, notice: Notice) -> str:
        return clipped(notice.error, 120)

    @admin.display(description="Why not")
    def shown_whole_error(self, notice: Notice) -> str:
        return clipped(notice.error, 2000) or "-"

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Asked by Django for the action below."""
        return request.user.has_perm(OPERATE)

    @admin.action(description="Try again", permissions=["operate"])
    def try_again(self, request: HttpRequest, chosen: QuerySet[Notice]) -> None:
        """Each of the chosen notices that was given up begins anew; the others stay as they are."""
        keys: list[Any] = list(chosen.values_list("pk", flat=True))
        begun = sum(sender.try_again(key) for key in keys)
        messages.success(request, f"{begun} of {len(keys)} notices are tried again; only those that failed can be.")
