"""Checks that a floor above contributes: it registers them when its app is ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from workflows.doctor.findings import Check, Patient

Look: TypeAlias = Callable[[Patient], Iterable[Check]]

_looks: dict[str, Look] = {}


def register(name: str, look: Look) -> None:
    """Add a look at the spec, which contacts nobody; registering a name again replaces it."""
    _looks[name] = look


def contributed(patient: Patient) -> Iterator[Check]:
    """What all of them found, in the order in which they were registered."""
    for look in _looks.values():
        yield from look(patient)
