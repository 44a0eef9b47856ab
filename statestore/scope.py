"""What every store checks before it touches anything: scope, keys, lifetimes, values and limits."""

from __future__ import annotations

import math
import time
from datetime import timedelta

from statestore import jsontext, keys
from statestore.entries import Lifetime
from statestore.errors import BadKey, BadLifetime, TooLarge

MAX_USER_BYTES = 1024 * 1024
MAX_APPROVAL_BYTES = 8 * 1024 * 1024
MAX_LIFETIME_SECONDS = 100 * 365 * 86400
MAX_WORKSPACE, MAX_WORKFLOW = 100, 200
#: A service's record may put so many levels around a value that is itself nested as deep as any may be.
RECORD_LEVELS = 4


class Scoped:
    """The workflow and workspace that a store is confined to, and the reserved kinds that it was opened for.

    Without `kinds` it holds the author's keys and no others. A service names its kinds and reaches those only.
    """

    def __init__(self, workspace: str, workflow: str, *, kinds: tuple[str, ...] = ()) -> None:
        for name, text, most in (("workspace", workspace, MAX_WORKSPACE), ("workflow", workflow, MAX_WORKFLOW)):
            keys.check_text(text, name)
            if not 0 < len(text) <= most:
                raise BadKey(f"A {name} has 1 to {most} characters; this one has {len(text)}.")
        unknown = [kind for kind in kinds if kind not in keys.RESERVED_KINDS]
        if unknown:
            raise BadKey(f"{', '.join(unknown)}: no such kind. Known: {', '.join(keys.RESERVED_KINDS)}.")
        self.workspace = workspace
        self.workflow = workflow
        self.kinds = kinds

    def check_range(self, prefix: str, after: str | None, limit: int | None) -> None:
        """Refuse a list that would leave this store's kinds, or a limit that is none."""
        keys.check_text(prefix, "prefix")
        keys.check_kind(prefix, self.kinds)
        if after is not None:
            keys.check_text(after, "key")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise BadKey("A limit is a whole number of at least 1.")


def encode(key: str, value: jsontext.Json) -> str:
    """The value's text, within the cap of the key's kind."""
    text = jsontext.dumps(value, spare=RECORD_LEVELS if keys.kind_of(key) else 0)
    limit = MAX_APPROVAL_BYTES if key.startswith(keys.APPROVAL) else MAX_USER_BYTES
    # A character takes at most four bytes: the short ones need no counting.
    if len(text) * 4 > limit and (size := len(text.encode())) > limit:
        raise TooLarge(size, limit)
    return text


def seconds_of(ttl: Lifetime) -> float | None:
    """A lifetime in seconds; None stays None."""
    if ttl is None:
        return None
    if isinstance(ttl, timedelta):
        seconds = ttl.total_seconds()
    elif isinstance(ttl, int | float) and not isinstance(ttl, bool):
        seconds = ttl
    else:
        raise BadLifetime(f"A time to live is seconds or a timedelta, not {type(ttl).__name__}.")
    if not math.isfinite(seconds) or not 0 < seconds <= MAX_LIFETIME_SECONDS:
        raise BadLifetime(f"A time to live of {ttl} is not between 0 and {MAX_LIFETIME_SECONDS} seconds.")
    return float(seconds)


def first_version() -> int:
    """Where a new entry's versions start: beyond any that the key has had, so an old reader never matches a new entry.

    Microseconds since 1970. An entry is changed less often than a million times a second.
    """
    return time.time_ns() // 1000
