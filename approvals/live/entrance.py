"""Who may open a socket: from a page of this site alone, as a browser sends its cookies with those of any page."""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest
from django.utils.module_loading import import_string

from approvals.policy import DECIDE, VIEW
from workflows.api.authentication import Standing, caller_of, standing
from workflows.errors import NotAllowed


def standings_of(scope: dict[str, Any]) -> frozenset[Standing]:
    """What must hold of whoever connects, and holds now. NotAuthenticated, or NotAllowed with the rule."""
    try:
        request = ASGIRequest({**scope, "type": "http", "method": "GET"}, io.BytesIO())
        if not from_this_site(request):
            raise NotAllowed("the page is of another site", rule="origin")
        sessions: type[SessionBase] = import_string(f"{settings.SESSION_ENGINE}.SessionStore")
        request.session = sessions(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
        request.user = get_user(request)
        caller = caller_of(request)
        held = [permission for permission in (VIEW, DECIDE) if caller.user.has_perm(permission)]
        if not held:
            raise NotAllowed(f"the permission {VIEW} is needed", rule=VIEW)
        return frozenset(standing(caller, permission) for permission in held)
    finally:
        connections.close_all()


def from_this_site(request: HttpRequest) -> bool:
    """A page of the host that was asked, which has to be one of ALLOWED_HOSTS, or of a trusted origin.

    Without an Origin no browser asks, so nobody's cookie is taken; a caller with an Authorization header, which a
    page cannot send, needs none.
    """
    try:
        host = request.get_host()
    except DisallowedHost:
        return False
    origin = request.headers.get("Origin")
    if origin is None:
        return "Authorization" in request.headers
    return origin in settings.CSRF_TRUSTED_ORIGINS or _host_of(origin) == host.lower()


def _host_of(origin: str) -> str:
    """The host and port of an origin, "" for `null` and for what is no web page."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return ""
    return parts.netloc.lower() if parts.scheme in ("http", "https") else ""
