"""Checks of the floors: each app registers its own when it is ready."""

from __future__ import annotations

from workflows.repair.findings import Check

_checks: dict[str, Check] = {}


def register(*checks: Check) -> None:
    """Add checks; registering a name again replaces it."""
    for check in checks:
        _checks[check.name] = check


def registered() -> tuple[Check, ...]:
    """All of them, in the order in which they were registered."""
    return tuple(_checks.values())
