"""Routes of approvals, and of deciding a run. Include it at the root, before `workflows.api.urls`."""

from __future__ import annotations

from django.urls import URLPattern, re_path

from approvals.api import changing, views
from workflows.api.endpoint import both
from workflows.api.fallback import NoRoute

urlpatterns: list[URLPattern] = [
    *both("approvals", views.Waiting.as_view(), "approvals"),
    *both("approvals/<str:key>", views.OneApproval.as_view(), "approval"),
    *both("approvals/<str:key>/approve", views.Decide.as_view(), "approval-approve"),
    *both("approvals/<str:key>/delegate", views.Delegate.as_view(), "approval-delegate"),
    *both("approvals/<str:key>/withdraw", views.Withdraw.as_view(), "approval-withdraw"),
    *both("approvals/<str:key>/edit", changing.EditApproval.as_view(), "approval-edit"),
    *both("approvals/<str:key>/rebind", changing.RebindApproval.as_view(), "approval-rebind"),
    *both("runs/<str:run_id>/approve", views.DecideRun.as_view(), "run-approve"),
    re_path(r"^approvals/", NoRoute.as_view()),
]
