"""Routes of runs, webhooks and health. Include it at the root; `approvals.api.urls` goes before it."""

from __future__ import annotations

from django.urls import URLPattern, re_path

from workflows.api import healthviews, metricsview, runviews, streamview, webhookviews
from workflows.api.endpoint import both
from workflows.api.fallback import NoRoute

urlpatterns: list[URLPattern] = [
    *both("healthz", healthviews.Health.as_view(), "healthz"),
    *both("readyz", healthviews.Ready.as_view(), "readyz"),
    *both("metrics", metricsview.Metrics.as_view(), "metrics"),
    *both("webhook", webhookviews.Webhook.as_view(), "webhook"),
    *both("webhook/<str:agent_id>", webhookviews.Webhook.as_view(), "webhook-agent"),
    *both("runs", runviews.Runs.as_view(), "runs"),
    *both("runs/<str:run_id>", runviews.OneRun.as_view(), "run"),
    *both("runs/<str:run_id>/events", streamview.run_events, "run-events"),
    *both("runs/<str:run_id>/cancel", runviews.Cancel.as_view(), "run-cancel"),
    *both("runs/<str:run_id>/retry", runviews.Retry.as_view(), "run-retry"),
    *both("runs/<str:run_id>/give-up", runviews.GiveUp.as_view(), "run-give-up"),
    re_path(r"^(runs|webhook|healthz|readyz|metrics)/", NoRoute.as_view()),
]
