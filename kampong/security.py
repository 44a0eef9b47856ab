"""The content security policy: pages load, post to and are framed by nothing but this site. What no log may say."""

from __future__ import annotations

import logging
import re

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


class HideLinks(logging.Filter):
    """Writes a signed link without its token: Django logs the path of a form that it takes for a forgery."""

    _LINK = re.compile(r"(/(?:approvals|slack)/link/)[^/\s'\"]+")

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        if "/link/" in said:
            record.msg, record.args = self._LINK.sub(r"\1...", said), ()
        return True


class Refused(logging.Filter):
    """A request that Django refuses (too large, too many fields, an unknown host) is a line of the log.

    Whoever sends it was answered, and must not fill the log with tracebacks and errors.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security."):
            record.exc_info = record.exc_text = None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True
