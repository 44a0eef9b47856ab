"""The route of signed links. Include it at the root, before `approvals.api.urls`, which answers all else below it."""

from __future__ import annotations

from django.urls import URLPattern

from approvals.links.views import Link
from workflows.api.endpoint import both

urlpatterns: list[URLPattern] = [*both("approvals/link/<str:token>", Link.as_view(), "approval-link")]
