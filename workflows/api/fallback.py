"""Answers where no view of ours got a say: JSON everywhere but in the admin, which keeps Django's pages."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse
from django.views import defaults
from rest_framework.request import Request

from workflows.api import errors
from workflows.api.endpoint import Endpoint


class NoRoute(Endpoint):
    """Every address below ours that means nothing; told to everybody, as there is nothing to protect."""

    authentication_classes = []
    query = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise errors.NoSuchRoute("there is nothing at this address")


def _is_page(request: HttpRequest) -> bool:
    try:
        return request.path.startswith(reverse("admin:index"))
    except NoReverseMatch:
        return False


def _say(code: str, message: str, **extra: Any) -> HttpResponse:
    return errors.to_response(errors.failure(code, message, extra))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400: what Django refused before any view, such as a foreign host name."""
    if _is_page(request):
        return defaults.bad_request(request, exception)
    return _say("invalid", "the request was refused", errors=[])


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403."""
    if _is_page(request):
        return defaults.permission_denied(request, exception)
    return _say("not_allowed", "not allowed", rule="not allowed")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404."""
    if _is_page(request):
        return defaults.page_not_found(request, exception)
    return _say("not_found", "there is nothing at this address")


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500. Django has logged it."""
    if _is_page(request):
        return defaults.server_error(request)
    return _say("internal", "something went wrong here; it is in the server's log")
