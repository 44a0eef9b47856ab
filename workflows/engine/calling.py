"""How a gate calls a tool without knowing tools: the two would need each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from workflows.engine.values import Json, MaybeJson
from workflows.engine.walk import Advance, Place, Walk


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """`what` a gate calls for, and the `roots` that the tool's templates see besides.

    `again` says how often the gate had been opened again by then: a call for another decision is another call.
    """

    what: str
    roots: Mapping[str, Json] = field(default_factory=dict)
    again: int = 0

    @property
    def key(self) -> str:
        """What tells this call from the step's others in an idempotency key."""
        return f"{self.what}-{self.again}" if self.again else self.what


class Caller(Protocol):
    """Calls a tool that needs no approval, inside a step."""

    def __call__(self, walk: Walk, place: Place, tool: str, purpose: Purpose, /) -> Advance[MaybeJson]:
        """The tool's output; StepFailed otherwise."""
