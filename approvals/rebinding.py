"""The door through which a request is bound to its spec as the file is now (design 2; issue "Spec drift")."""

from __future__ import annotations

from approvals.models import ApprovalRequest
from workflows.actors import Actor
from workflows.models import WORKSPACE


def rebind(
    key: str, *, actor: Actor, reason: str, digest: str | None = None, workspace: str = WORKSPACE
) -> ApprovalRequest:
    """Go on under the spec as it is in its file now, at the step of the same name; somebody then decides as usual.

    Votes and edits are void. Raises NotAllowed (before any look-up; never whoever started the run), ApprovalNotFound,
    Invalid, ActionChanged, NotPossible (with why), AlreadyResolved and Busy. A refusal changes nothing.
    """
    raise NotImplementedError
