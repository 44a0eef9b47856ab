"""Whether a value fits a schema of the subset that specs have: patterns are searched for in the guarded child."""

from __future__ import annotations

from typing import Any

from workflows.adapters.evaluator import shared
from workflows.engine import schema
from workflows.engine.effects import ExpressionFailed, MatchPatterns
from workflows.engine.values import Json


class PatternFailed(ValueError):
    """A pattern of the schema cannot be searched for; the text says why."""


def problems(held: dict[str, Json], value: Any) -> list[str]:
    """Everything that is wrong with the value, each problem starting with its path from `output`. PatternFailed."""
    pairs = schema.patterns(held, value)
    if not pairs:
        return schema.problems(held, value, {})
    outcome = shared().match(MatchPatterns(pairs=pairs))
    if isinstance(outcome, ExpressionFailed):
        raise PatternFailed(outcome.reason)
    return schema.problems(held, value, dict(zip(pairs, outcome.found, strict=True)))
