"""What a person was shown of an action that is too long for where it was shown, and whether they opened the rest.

A surface that shows everything, such as the answer of `GET /approvals/<key>`, has no limit here and clips nothing.
"""

from __future__ import annotations

from typing import Any

from approvals.models import ApprovalRequest, Look
from approvals.notices.slack_card import MOST_LINES, VALUE_LIMIT, lines_of
from approvals.notices.slack_text import SECTION_LIMIT, escaped
from approvals.records import Record
from approvals.wording import parts_of
from statestore.clock import now
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.visible import visible

#: The characters of an action that a page shows at most.
LIMITS: dict[str, int] = {"admin": 20_000, "link": 20_000}


def whole(record: Record) -> str:
    """What is approved, as it is stored and as a download has it: message and action, JSON."""
    return jsontext.dumps_pretty({"message": record["reason"], "action": record["action"]})


def is_clipped(record: Record, surface: str) -> bool:
    """Whether this surface shows less of the action than there is."""
    if surface == "slack":
        return not _fits_a_card(record)
    limit = LIMITS.get(surface)
    return limit is not None and len(whole(record)) > limit


def _fits_a_card(record: Record) -> bool:
    """Whether Slack's card leaves nothing out: it has so many lines, each and all of them so long."""
    texts = [str(record["reason"])]
    if record["action"] is not None:
        parts = list(parts_of(record["kind"], record["action"]))
        if len(parts) > MOST_LINES or any(_is_long(part.value) for part in parts):
            return False
        texts.append("\n".join(lines_of(record["kind"], record["action"])))
    return all(escaped(text, SECTION_LIMIT) == escaped(text, 10 * len(text) + 1) for text in texts)


def _is_long(value: Json) -> bool:
    text = value if isinstance(value, str) else jsontext.as_text(value)
    return len(" ".join(visible(text).split())) > VALUE_LIMIT


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
