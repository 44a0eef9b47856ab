"""The filters of `GET /approvals` (design 5.2); docs/http.md names them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

from django.contrib.auth.models import AbstractUser
from rest_framework.request import Request

from approvals.narrowing import Narrowing
from workflows import runs
from workflows.api import paging
from workflows.errors import Invalid, RunNotFound
from workflows.spec import durations

NAMES = ("agent", "run", "step", "group", "mine", "olderThan", "expiresWithin", "q")
MOST_WORDS = 100


def asked(request: Request, user: AbstractUser) -> Narrowing:
    """What the query asks for; Invalid for what is no value of its filter. Nothing is looked up."""
    given = request.query_params
    for name in ("agent", "step", "group", "q"):
        if name in given and not given[name]:
            raise _invalid(name, "is empty: leave it out, or say what to look for")
    if len(given.get("q", "")) > MOST_WORDS:
        raise _invalid("q", f"at most {MOST_WORDS} characters")
    return Narrowing(
        agent=given.get("agent", ""),
        run=_run(request),
        step=given.get("step", ""),
        group=given.get("group", ""),
        mine=user if paging.flag_of(request, "mine") else None,
        older_than=_span(request, "olderThan"),
        expires_within=_span(request, "expiresWithin"),
        q=given.get("q", ""),
    )


def found(by: Narrowing) -> Narrowing:
    """The same, where an old id means the newest run of its chain; an unknown one has nothing that waits."""
    if not by.run:
        return by
    try:
        return replace(by, run=str(runs.newest(runs.find_run(by.run)).uuid))
    except RunNotFound:
        return by


def _run(request: Request) -> str:
    given = request.query_params.get("run")
    if given is None:
        return ""
    try:
        return str(uuid.UUID(given))
    except ValueError as error:
        raise _invalid("run", "must be a run id") from error


def _span(request: Request, name: str) -> timedelta | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    try:
        return timedelta(seconds=durations.seconds(given))
    except ValueError as error:
        raise _invalid(name, "must be a length of time, such as 30m, 4h, 1d or 1w") from error


def _invalid(path: str, message: str) -> Invalid:
    return Invalid(f"{path}: {message}", [{"path": path, "message": message}])
