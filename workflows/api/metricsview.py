"""`GET /metrics`: for Prometheus, which sends a token, or for a session."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from workflows.api import exposition
from workflows.api.authentication import need_permission
from workflows.api.endpoint import Endpoint

VIEW = "workflows.view_run"


class Metrics(Endpoint):
    """What this process has counted, and what waits by the database."""

    def get(self, request: Request) -> HttpResponse:
        need_permission(self.caller, VIEW)
        return HttpResponse(exposition.text(), content_type=exposition.CONTENT_TYPE)
