"""Request bodies: read with a limit, then checked against a closed list of fields (design 5.2).

Unknown fields are refused by name, so that a body cannot bring its own actor, state or step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.http.request import UnreadablePostError

from workflows.api.bodylimit import LIMIT, OVER_LIMIT
from workflows.api.errors import UnsupportedMediaType
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.errors import Invalid, TooLarge

JSON_TYPE = "application/json"
TEXT_LIMIT = 4000


def take_body(request: HttpRequest) -> bool:
    """Read the body, at most LIMIT bytes of it, and leave it on the request; whether it was within the limit.

    Done before anything else looks at the request: a form parser would read it without a limit.
    """
    if getattr(request, "scope", {}).get(OVER_LIMIT):
        content, within = b"", False
    else:
        try:
            content = request.read(LIMIT + 1)
        except (OSError, UnreadablePostError) as error:
            raise Invalid("the body could not be read to its end") from error
        within = len(content) <= LIMIT
    request._body = content if within else b""
    return within


def too_large() -> TooLarge:
    """The refusal of a body over the limit."""
    return TooLarge(f"the body is over the limit of {LIMIT} bytes", limit=LIMIT)


def text_of(content: bytes) -> str:
    """The body as text; Invalid unless it is UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"the body is not UTF-8: byte {error.start} cannot be read", []) from error


def json_of(content: bytes) -> Json:
    """The body as JSON; Invalid unless it is strict JSON."""
    text = text_of(content)
    if not text.strip():
        raise Invalid("the body is empty; JSON is expected", [])
    try:
        return jsontext.loads(text)
    except jsontext.NotJson as error:
        raise Invalid(f"the body is no good JSON: {error}", [{"path": error.path, "message": error.reason}]) from error


# Fields ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a body. `problem` says what is wrong with a value, or nothing. Null counts as absent."""

    problem: Callable[[Json], str]
    required: bool = False


def json_object(request: HttpRequest, fields: Mapping[str, Field]) -> dict[str, Any]:
    """The body's fields, None for one that was not given.

    Raises UnsupportedMediaType, or Invalid with every problem by its path.
    """
    if request.body and request.content_type != JSON_TYPE:
        given = request.content_type or "none"
        raise UnsupportedMediaType(
            f"the body must be JSON: send Content-Type {JSON_TYPE} (given: {given})", accepted=[JSON_TYPE]
        )
    _refuse_repeated_names(request.body)
    content = json_of(request.body)
    if not isinstance(content, dict):
        raise Invalid("the body must be a JSON object", [{"path": "", "message": "must be a JSON object"}])
    errors = [
        {"path": name, "message": f"unknown field; known: {', '.join(fields)}"}
        for name in content
        if name not in fields
    ]
    for name, field in fields.items():
        value = content.get(name)
        if value is None:
            if field.required:
                errors.append({"path": name, "message": "is required"})
        elif message := field.problem(value):
            errors.append({"path": name, "message": message})
    if errors:
        raise Invalid("; ".join(f"{error['path']}: {error['message']}" for error in errors), errors)
    return {name: content.get(name) for name in fields}


def _refuse_repeated_names(content: bytes) -> None:
    """`{"approved": false, "approved": true}` means nothing that anybody could be held to."""

    def once(pairs: list[tuple[str, Json]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Invalid(f"{name}: given twice", [{"path": name, "message": "given twice"}])
            seen.add(name)

    try:
        json.loads(content, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return  # not JSON at all: `json_of` says what is wrong, and where


def is_text(value: Json) -> str:
    """A text of any length."""
    return "" if isinstance(value, str) else "must be text"


def is_short_text(value: Json) -> str:
    """A text that a person typed."""
    if not isinstance(value, str):
        return "must be text"
    return "" if len(value) <= TEXT_LIMIT else f"at most {TEXT_LIMIT} characters"


def is_boolean(value: Json) -> str:
    """true or false, and nothing that only looks like it."""
    return "" if isinstance(value, bool) else "must be true or false"


def is_object(value: Json) -> str:
    """A JSON object."""
    return "" if isinstance(value, dict) else "must be a JSON object"


def is_anything(value: Json) -> str:
    """Any JSON value; the service below judges it."""
    return ""
