"""The fingerprint of what a person is asked to approve (design 6)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from workflows.engine import jsontext
from workflows.engine.effects import PauseKind
from workflows.engine.values import Json

FORMAT = 1


def action_digest(
    *,
    kind: PauseKind,
    step: str,
    message: str,
    action: Json,
    url_marks: Mapping[str, str] | None = None,
    changed: Mapping[str, Json] | None = None,
) -> str:
    """`1:<hex>`: equal exactly when the decider is shown the same.

    `action` tells author references from data of the same spelling. `url_marks` are the keyed marks of the present
    values that the url refers to, so that a switched host is noticed. `changed` are the edits of earlier outputs.
    """
    shown = {"kind": kind, "step": step, "message": message, "action": action, "url": dict(url_marks or {})}
    if changed:
        shown["changed"] = dict(changed)
    text = jsontext.canonical(shown)
    return f"{FORMAT}:{hashlib.sha256(text.encode('utf-8', errors='surrogatepass')).hexdigest()}"
