"""What a test made the counters count, and what the log said meanwhile."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kampong.logs import Json
from kampong.security import HideLinks, Refused
from workflows.metrics.counters import Counter, Histogram, Labels


def taken(metric: Counter | Histogram) -> dict[Labels, int]:
    """The numbers of a counter, or how often a histogram was told something."""
    if isinstance(metric, Counter):
        return metric.numbers()
    return {labels: sum(spread.counts) for labels, spread in metric.spreads().items()}


@contextmanager
def grown(metric: Counter | Histogram) -> Iterator[dict[Labels, int]]:
    """By how much the block made it grow, filled in at its end; what stayed is left out."""
    before, more = taken(metric), dict[Labels, int]()
    yield more
    more |= {labels: number - before.get(labels, 0) for labels, number in taken(metric).items()}
    for labels in [labels for labels, number in more.items() if not number]:
        del more[labels]


@contextmanager
def logged(name: str, formatter: logging.Formatter | None = None) -> Iterator[list[Any]]:
    """The lines of this logger during the block, as the project's handler writes them; JSON ones are read."""
    text, lines = io.StringIO(), list[Any]()
    handler = logging.StreamHandler(text)
    handler.setFormatter(formatter or Json())
    for one in (HideLinks(), Refused()):
        handler.addFilter(one)
    logger = logging.getLogger(name)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        lines += text.getvalue().splitlines() if formatter else map(json.loads, text.getvalue().splitlines())
