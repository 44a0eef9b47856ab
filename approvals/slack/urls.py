"""Routes of Slack: include it at the root."""

from __future__ import annotations

from django.urls import URLPattern

from approvals.slack import views
from workflows.api.endpoint import both

urlpatterns: list[URLPattern] = [
    *both("slack/interactions", views.Interactions.as_view(), "slack-interactions"),
    *both("slack/link/<str:token>", views.LinkAccount.as_view(), "slack-link"),
]
