"""The store in the admin: which entries there are, never what is in them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from statestore.keys import shown
from statestore.models import StateRecord


@admin.register(StateRecord)
class StateRecordAdmin(admin.ModelAdmin[StateRecord]):
    """Read only. An approval's key is shown as a fingerprint: whoever has the key may name the request."""

    list_display = ["shown_key", "workspace", "workflow", "version", "expires_at", "updated_at"]
    list_filter = ["workspace", "workflow"]
    fields = ("shown_key", "workspace", "workflow", "version", "expires_at", "created_at", "updated_at")
    readonly_fields = ("shown_key",)
    ordering = ["-updated_at", "-id"]
    list_per_page = 50
    actions = None

    @admin.display(description="Key")
    def shown_key(self, record: StateRecord) -> str:
        return shown(record.key)

    def get_queryset(self, request: HttpRequest) -> QuerySet[StateRecord]:
        return super().get_queryset(request).defer("value")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
