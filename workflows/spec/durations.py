"""Lengths of time as version 1.2 writes them: `30s`, `15m`, `4h`, `2d`, `1w`."""

from __future__ import annotations

import re

from workflows.spec.errors import Path, clipped
from workflows.spec.model import Json
from workflows.spec.shapes import Faults, is_number, wrong_type

_DURATION = re.compile(r"([0-9]{1,9})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
#: Ten years: no clock, and no database, is asked for a time beyond it.
MOST_SECONDS = 3_650 * 86_400


def seconds(text: str) -> int:
    """The seconds of a duration; ValueError for a text that is none, or that no clock should be asked for."""
    found = _DURATION.fullmatch(text)
    length = int(found[1]) * _SECONDS[found[2]] if found else 0
    if not 0 < length <= MOST_SECONDS:
        raise ValueError(f"{text!r} is not a duration")
    return length


def duration(value: Json, path: Path, faults: Faults) -> Json:
    """The shape of one duration. The text comes back as it was written."""
    if is_number(value):
        units = ", ".join(f'"{value}{unit}"' for unit in _SECONDS)
        faults.hard(path, f'"{path[-1]}" needs a unit: {units}')
    elif not isinstance(value, str):
        wrong_type("a duration such as 4h", value, path, faults)
    else:
        try:
            seconds(value)
        except ValueError:
            faults.soft(
                path,
                f'"{path[-1]}" is not a duration: "{clipped(value)}"; write a whole number above 0 and one of s, m, h, '
                'd, w, as in "30s" or "2d", at most ten years',
            )
    return value
