"""JSON values, and the one value that JSON has not: nothing (engine semantics 1)."""

from __future__ import annotations

import enum
from typing import Any, Final, Literal, TypeAlias


class Nothing(enum.Enum):
    """No value at all: a missing key, an `extract` that found nothing. `null` (None) is an ordinary value."""

    NOTHING = "nothing"

    def __bool__(self) -> bool:
        return False


NOTHING: Final = Nothing.NOTHING

#: None, bool, int, float, str, list of Json, dict of str to Json.
Json: TypeAlias = Any
MaybeJson: TypeAlias = Json | Literal[Nothing.NOTHING]
#: Outputs of completed steps by name, in step order; NOTHING for a step that completed without a value.
Outputs: TypeAlias = dict[str, MaybeJson]
