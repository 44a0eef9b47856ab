"""How an entry of the store is told on a page: its key, and the run that it names."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.urls import reverse

from statestore import keys
from statestore.overview import Kept
from workflows.models import WORKSPACE, Run


def shown_key(key: str) -> str:
    """An incident's own; of a SHA-256 its beginning; of any other the store's fingerprint."""
    kind = keys.kind_of(key) or ""
    part = key.removeprefix(kind)
    match kind:
        case keys.INCIDENT:
            return part
        case keys.SEEN | keys.HOOK:
            return part.rpartition(":")[2][:12]
        case _:
            return keys.fingerprint(key)


def run_of(one: Kept) -> str:
    """The id of the run that the entry names; empty where it names none."""
    if not isinstance(one.value, dict) or one.key.startswith(keys.CURSOR):
        return ""
    named = one.value.get("runId") if one.key.startswith(keys.INCIDENT) else one.value.get("run")
    return named if isinstance(named, str) else ""


def runs_by_uuid(names: Iterable[str]) -> dict[str, str]:
    """The addresses of the pages of those runs that are still there."""
    wanted = {name for name in names if _is_uuid(name)}
    found = Run.objects.filter(workspace=WORKSPACE, uuid__in=wanted).values_list("uuid", "pk") if wanted else ()
    return {str(name): reverse("admin:workflows_run_change", args=[pk]) for name, pk in found}


def _is_uuid(name: str) -> bool:
    try:
        uuid.UUID(name)
    except ValueError:
        return False
    return True
