"""Linked Slack accounts in the admin: who decides as whom, and taking a link away, which the audit keeps."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from approvals import slack_links
from approvals.admin.access import actor_of
from approvals.models import SlackUser
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.words import clipped


class SlackUserAdmin(ReadOnlyAdmin[SlackUser]):
    """A list, and deleting: the account decides as nobody from then on. People link their accounts themselves."""

    list_display = ["shown_name", "team", "slack_id", "user", "linked_at"]
    list_select_related = ["user"]
    search_fields = ["slack_id", "name", "user__username"]
    search_help_text = "Slack id, name or user"
    ordering = ["-pk"]
    fields = ("shown_name", "team", "slack_id", "user", "linked_at")
    readonly_fields = ("shown_name",)

    @admin.display(description="Name in Slack")
    def shown_name(self, linked: SlackUser) -> str:
        return clipped(linked.name, 100) or "(no name)"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("approvals.delete_slackuser")

    def delete_model(self, request: HttpRequest, obj: SlackUser) -> None:
        slack_links.unlink(obj, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[SlackUser]) -> None:
        for linked in queryset:
            slack_links.unlink(linked, actor=actor_of(request))
