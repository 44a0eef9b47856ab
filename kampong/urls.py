"""All routes."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("sign-in", LoginView.as_view(template_name="sign_in.html"), name="sign-in"),
    path("", include("approvals.links.urls")),
    path("", include("approvals.slack.urls")),
    path("", include("approvals.api.urls")),
    path("", include("workflows.api.urls")),
]

handler400 = "workflows.api.fallback.bad_request"
handler403 = "workflows.api.fallback.permission_denied"
handler404 = "workflows.api.fallback.not_found"
handler500 = "workflows.api.fallback.server_error"
