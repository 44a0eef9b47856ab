"""`GET /healthz` and `GET /readyz`: no sign-in, no secrets, names only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from django.db import Error, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from rest_framework.request import Request
from rest_framework.response import Response

from workflows import beats
from workflows.api.endpoint import Endpoint
from workflows.draining import draining
from workflows.registry import registry
from workflows.spec import editor_schema

#: What a message quotes: a text, or an expression.
_QUOTED = re.compile(r'"([^"]*)"|\{\{.*\}\}')
_HIDDEN = "(not shown here)"


class Open(Endpoint):
    """For whoever asks."""

    authentication_classes = []
    query = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)


class Health(Open):
    """The process answers; nothing else is asked."""

    def get(self, request: Request) -> Response:
        return Response({"status": "ok"})


class Ready(Open):
    """Whether work that arrives now will be done: 200, or 503 with the parts that are not ready.

    A broken spec is told and makes nothing unready: the other specs are served.
    """

    def get(self, request: Request) -> Response:
        checks = {
            "database": _asked(_database),
            "migrations": _asked(_migrations),
            "worker": _asked(_worker),
            "draining": {"ok": not draining.is_set()},
        }
        ready = all(check["ok"] for check in checks.values())
        body = {"status": "ok" if ready else "not ready", "checks": checks, "specs": _specs()}
        return Response(body, status=200 if ready else 503)


def _asked(check: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The check's answer; a database that does not answer is a part that is not ready, by the error's name."""
    try:
        return check()
    except Error as error:
        return {"ok": False, "error": type(error).__name__}


def _database() -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return {"ok": True}


@cache
def _wanted() -> frozenset[tuple[str, str]]:
    """The last migrations of every app, as they are on the disk."""
    return frozenset(MigrationLoader(None).graph.leaf_nodes())


def _migrations() -> dict[str, Any]:
    missing = _wanted() - set(MigrationRecorder(connection).applied_migrations())
    return {"ok": not missing, "missing": sorted(f"{app}.{name}" for app, name in missing)}


def _worker() -> dict[str, Any]:
    alive = len(beats.alive())
    return {"ok": alive > 0, "alive": alive}


def _specs() -> dict[str, Any]:
    """How many are served; and of each broken file its name, its agent, and what is wrong first."""
    served, refused = registry().files(), registry().broken()
    folders = {file.path.parent for file in served} | {file.path.parent for file in refused}
    broken = [
        {"file": file.path.name, "agent": file.agent_id, "error": _in_public(str(file.errors[0]), folders)}
        for file in refused
    ]
    return {"served": len(served), "broken": broken}


@cache
def _words_of_the_format() -> frozenset[str]:
    """Every key and word that a spec may hold by its format: what a message quotes besides is the author's."""
    found: set[str] = set()
    parts: list[Any] = [editor_schema.schema()]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            found.update(part)
            parts += part.values()
        elif isinstance(part, list):
            parts += part
        elif isinstance(part, str):
            found.add(part)
    return frozenset(found)


def _in_public(message: str, folders: Iterable[Path]) -> str:
    """The message for whoever asks: no folder of this machine, and nothing that the file says by itself."""
    for folder in sorted(map(str, folders), key=len, reverse=True):
        message = message.replace(f"{folder}/", "")
    known = _words_of_the_format()
    return _QUOTED.sub(lambda found: found[0] if found[1] in known else _HIDDEN, message)
