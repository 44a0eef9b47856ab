"""What people may change of a request before it is approved, and what would run with the change (spec 1.2, `editable`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from approvals.models import ApprovalRequest
from approvals.records import Record
from workflows.engine.values import Json, MaybeJson, Outputs


@dataclass(frozen=True, kw_only=True)
class Editable:
    """A path that the policy lets people change, with its present value; `kind` is its type, which stays."""

    path: str
    value: Json
    kind: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One value that an edit changes: what was shown when the request was opened, and what stands with the edit."""

    path: str
    before: MaybeJson
    after: MaybeJson


@dataclass(frozen=True, kw_only=True)
class Edited:
    """What would run with all edits that stand: `edits` by path, and the action, digest and outputs with them."""

    action: Json
    digest: str
    reason: str
    edits: Mapping[str, Json]
    outputs: Outputs
    differences: list[Difference] = field(default_factory=list)


def preview(request: ApprovalRequest, record: Record, edits: Json) -> Edited:
    """The action with these edits over those that stand. Reads only.

    Raises Invalid, field by field (`edits.<path>`), and NotPossible where the action cannot be rendered here.
    """
    raise NotImplementedError


def offered(request: ApprovalRequest, record: Record) -> list[Editable]:
    """What this request lets people change, with the values that stand now, in the order of the policy."""
    raise NotImplementedError


def differences(request: ApprovalRequest, record: Record) -> list[Difference]:
    """The edits that stand, beside the values with which the request was opened."""
    raise NotImplementedError
