"""What all parts of a loaded spec share."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

Number: TypeAlias = int | float
#: None, bool, int, float, str, list or dict of these.
Json: TypeAlias = Any


class Part(BaseModel):
    """What all parts of a spec share: immutable, strict about types, no unknown fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
