"""How often a test repeats itself: a small fixed count in `make test`, the full one in `make prove`."""

from __future__ import annotations

from tests.databases import PROVE


def count(small: int, full: int) -> int:
    """`small` in the everyday suites, `full` when proving."""
    return full if PROVE else small
