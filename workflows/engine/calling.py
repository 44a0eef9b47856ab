"""How a gate calls a tool without knowing tools: the two would need each other."""

from __future__ import annotations

from typing import Protocol

from workflows.engine.values import Json, MaybeJson
from workflows.engine.walk import Advance, Place, Walk


class Caller(Protocol):
    """Calls a tool that needs no approval, inside a step."""

    def __call__(self, walk: Walk, place: Place, tool: str, what: str, more: dict[str, Json], /) -> Advance[MaybeJson]:
        """The tool's output; StepFailed otherwise. `what` it is for, and the roots that its templates see besides."""
