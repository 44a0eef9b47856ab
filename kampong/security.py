"""The content security policy: pages load, post to and are framed by nothing but this site."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

POLICY = (
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'; "
    "img-src 'self' data:"
)


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    """Adds the policy to every answer that does not bring its own."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response
