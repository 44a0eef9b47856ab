"""What a person was shown of an action that is too long for where it was shown, and whether they opened the rest.

A surface that shows everything, such as the answer of `GET /approvals/<key>`, has no limit here and clips nothing.
"""

from __future__ import annotations

from typing import Any

from approvals.models import ApprovalRequest, Look
from approvals.records import Record
from statestore.clock import now
from workflows.actors import Actor
from workflows.engine import jsontext

#: The characters of an action that a surface shows at most. What is not named shows all of it.
LIMITS: dict[str, int] = {"admin": 20_000, "link": 20_000, "slack": 2_500}


def whole(record: Record) -> str:
    """What is approved, as it is stored and as a download has it: message and action, JSON."""
    return jsontext.dumps_pretty({"message": record["reason"], "action": record["action"]})


def is_clipped(record: Record, surface: str) -> bool:
    """Whether this surface shows less of the action than there is."""
    limit = LIMITS.get(surface)
    return limit is not None and len(whole(record)) > limit


def look(request: ApprovalRequest, user_id: int, digest: str) -> None:
    """Note that this user opened the whole of this version; a second time changes nothing."""
    Look.objects.bulk_create([Look(request=request, user_id=user_id, digest=digest, at=now())], ignore_conflicts=True)


def has_looked(request: ApprovalRequest, user_id: int | None, digest: str) -> bool:
    """Whether this user opened the whole of exactly this version, wherever the link was pressed."""
    return user_id is not None and Look.objects.filter(request=request, user_id=user_id, digest=digest).exists()


def proof(request: ApprovalRequest, record: Record, actor: Actor) -> dict[str, Any]:
    """What the audit says of a decision on a clipped action: `{clipped, opened}`; nothing where all was shown."""
    if not is_clipped(record, actor.surface):
        return {}
    return {"clipped": True, "opened": has_looked(request, actor.user_id, record["digest"])}
