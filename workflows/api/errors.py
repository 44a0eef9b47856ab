"""The one error table of the HTTP interface: a stable code for every refusal, its status, and one shape (design 5.2).

`{success: false, code, error, ...}`. What was not foreseen is logged and answered as `internal`, without details.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from django.http.request import RawPostDataException, UnreadablePostError
from rest_framework.exceptions import APIException, MethodNotAllowed, NotFound

from workflows.engine import jsontext
from workflows.errors import Refusal

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/json"
RETRY_AFTER_SECONDS = 1

#: Every code that can be on the wire, with its status.
STATUS: Mapping[str, int] = {
    "invalid": 400,
    "not_authenticated": 401,
    "not_allowed": 403,
    "agent_not_found": 404,
    "approval_not_found": 404,
    "not_found": 404,
    "run_not_found": 404,
    "method_not_allowed": 405,
    "action_changed": 409,
    "already_resolved": 409,
    "not_possible": 409,
    "nothing_pending": 409,
    "spec_changed": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "internal": 500,
    "model_unavailable": 500,
    "busy": 503,
    "spec_broken": 503,
}


class UnsupportedMediaType(Refusal):
    """The body is not of the type that this route takes; `extra["accepted"]` says which."""

    code = "unsupported_media_type"


class NoSuchRoute(Refusal):
    """Nothing answers at this address."""

    code = "not_found"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error answer, not yet in anybody's response class."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def failure(code: str, message: str, extra: Mapping[str, Any] | None = None, **headers: str) -> Failure:
    """An answer with this code; `headers` are written with underscores."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    if code == "not_authenticated":
        named["WWW-Authenticate"] = 'Bearer realm="kampong"'
    if code == "busy":
        named["Retry-After"] = str(RETRY_AFTER_SECONDS)
    body = {"success": False, "code": code, "error": message, **(extra or {})}
    return Failure(status=STATUS[code], body=body, headers=named)


def failure_of(error: BaseException) -> Failure:
    """The answer for anything that a view raised."""
    if isinstance(error, Refusal) and error.code in STATUS:
        return failure(error.code, error.message, error.extra)
    if isinstance(error, OperationalError | InterfaceError) and not _is_broken_schema(error):
        # The text can name hosts and files: it belongs in the log.
        logger.warning("answered busy: %s: %s", type(error).__name__, str(error).strip())
        return failure("busy", "the database is busy or away; try again in a moment")
    known = _of_the_framework(error)
    if known is not None:
        return known
    logger.error("answered internal", exc_info=(type(error), error, error.__traceback__))
    return failure("internal", "something went wrong here; it is in the server's log")


def _of_the_framework(error: BaseException) -> Failure | None:
    """What Django and its REST framework raise by themselves."""
    if isinstance(error, MethodNotAllowed):
        return failure("method_not_allowed", str(error.detail))
    if isinstance(error, Http404 | NotFound):
        return failure("not_found", "there is nothing at this address")
    if isinstance(error, PermissionDenied):
        return failure("not_allowed", str(error) or "not allowed", {"rule": str(error) or "not allowed"})
    if isinstance(error, RequestDataTooBig):
        return failure("too_large", str(error))
    if isinstance(error, SuspiciousOperation | RawPostDataException | UnreadablePostError):
        return failure("invalid", "the request could not be read", {"errors": []})
    if isinstance(error, APIException) and error.status_code < 500:
        return failure("invalid", str(error.detail), {"errors": []})
    return None


def _is_broken_schema(error: BaseException) -> bool:
    """SQLite reports a missing table as an operational error; trying again does not help."""
    return "no such " in str(error)


def to_response(answer: Failure) -> HttpResponse:
    """The answer for plain Django views."""
    response = HttpResponse(jsontext.dumps(answer.body), status=answer.status, content_type=CONTENT_TYPE)
    for name, text in answer.headers.items():
        response[name] = text
    return finished(response)


def finished(response: HttpResponse) -> HttpResponse:
    """Never cached. Marked as logged: Django would log the path of a refusal, and with it an approval's key."""
    response.headers.setdefault("Cache-Control", "no-store")
    response._has_been_logged = True  # type: ignore[attr-defined]  # what django.utils.log itself sets
    return response
