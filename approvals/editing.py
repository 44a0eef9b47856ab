"""The door through which what waits is changed by a proposal that somebody else decides (design 2; spec 1.2)."""

from __future__ import annotations

from approvals.changes import Difference, Editable, Edited, differences, offered, preview
from approvals.models import ApprovalRequest
from workflows.actors import Actor
from workflows.engine.values import Json
from workflows.models import WORKSPACE

__all__ = ["Difference", "Editable", "Edited", "differences", "edit_request", "offered", "preview"]


def edit_request(
    key: str,
    *,
    edits: Json,
    actor: Actor,
    reason: str | None = None,
    digest: str | None = None,
    workspace: str = WORKSPACE,
) -> ApprovalRequest:
    """Propose a change of what waits: votes are void, and the digest that counts from now on is the edited one.

    Raises NotAllowed (before any look-up), ApprovalNotFound, SpecChanged, ActionChanged, Invalid (field by field),
    NotPossible, AlreadyResolved and Busy. A refusal changes nothing.
    """
    raise NotImplementedError
