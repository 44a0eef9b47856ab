"""Refusals of the store. One base class; each message says what happened and what to do next."""

from __future__ import annotations


class StateStoreError(Exception):
    """The store refused; nothing was written."""


class BadKey(StateStoreError):
    """The key, prefix or scope is empty, too long, or holds a character that no database keeps."""


class ReservedKind(StateStoreError):
    """The key belongs to a kind that this store was not opened for; only the service that owns the kind reaches it."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class BadLifetime(StateStoreError):
    """A time to live is a positive, finite number of seconds or a timedelta, at most a hundred years."""


class NotJson(StateStoreError):
    """The value is not strict JSON; `path` names the place, `reason` what is wrong there."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class TooLarge(StateStoreError):
    """The value's text is over the cap of its kind; `size` and `limit` are bytes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"The value takes {size} bytes; at most {limit} can be kept here. Store a reference instead.")
        self.size = size
        self.limit = limit


class NotCompacted(StateStoreError):
    """The file of the database could not be made smaller; the message says why, and what to do."""
