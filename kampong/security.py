"""The content security policy: pages load, post to and are framed by nothing but this site. What no log may say."""

from __future__ import annotations

import logging
import re
import uuid

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from statestore.keys import APPROVAL, shown

POLICY = (
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'; "
    "img-src 'self' data:"
)


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    """Adds the policy to every answer that does not bring its own."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response


_LINK = re.compile(r"(/(?:approvals|slack)/link/)[^/\s'\"]+")
_KEY = re.compile(r"(/approvals/)([0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12})(?![0-9A-Fa-f])")


def hide(text: str) -> str:
    """The text with signed links without their tokens, and keys in paths as their fingerprints."""
    if "/link/" in text:
        text = _LINK.sub(r"\1...", text)
    if "/approvals/" in text:
        text = _KEY.sub(lambda found: found[1] + shown(f"{APPROVAL}{uuid.UUID(found[2])}"), text)
    return text


class HideLinks(logging.Filter):
    """Writes no token of a link and no key: Django logs the path of a form that it takes for a forgery."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        hidden = hide(said)
        if hidden != said:
            record.msg, record.args = hidden, ()
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
