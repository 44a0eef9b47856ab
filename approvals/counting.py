"""Counts of the queue that cost the same however much waits: each stops at a thousand, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import EmptyResultSet
from django.db import connections

from approvals.narrowing import Requests, waits_for
from approvals.queue import open_requests
from workflows.models import WORKSPACE

MOST = 1000


def bounded(counts: Mapping[str, Requests]) -> dict[str, int]:
    """How many rows each has, at most one more than a thousand; all in one query."""
    found = dict.fromkeys(counts, 0)
    parts: dict[str, str] = {}
    parameters: list[Any] = []
    for name, rows in counts.items():
        query = rows.order_by().values("pk")[: MOST + 1].query
        try:
            text, given = query.get_compiler(rows.db).as_sql()
        except EmptyResultSet:
            continue
        parts[name] = f"(SELECT count(*) FROM ({text}) AS bounded)"  # noqa: S608  (made of our own queries alone)
        parameters += given
    if parts:
        with connections[next(iter(counts.values())).db].cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(parts.values())}", parameters)
            found |= zip(parts, map(int, cursor.fetchone()), strict=True)
    return found


def bounded_count(rows: Requests) -> int:
    """The same for one."""
    return bounded({"all": rows})["all"]


def in_words(count: int, *, least: bool = False) -> str:
    """`37`, `1,000+`; with `least`, `37+`: so many were found, and there may be more."""
    if count > MOST:
        return f"{MOST:,}+"
    return f"{count:,}+" if least and count else f"{count:,}"


def waiting_for(user: AbstractUser, workspace: str = WORKSPACE) -> int:
    """How many requests wait for this user."""
    return bounded_count(waits_for(open_requests(workspace), user))
