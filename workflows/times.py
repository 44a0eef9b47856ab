"""Times on the wire: RFC 3339, UTC, with `Z` (design 5.2)."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """`2026-11-29T10:00:00.123Z`, whole milliseconds."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
