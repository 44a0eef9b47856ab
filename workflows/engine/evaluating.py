"""Evaluating the expressions of a 1.1 spec, and the message when one fails (engine semantics 8, 10)."""

from __future__ import annotations

from collections.abc import Mapping

from workflows.engine import render11
from workflows.engine.effects import Evaluate, Evaluated, ExpressionFailed, Matched, MatchPatterns
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.engine.walk import Advance, Place, StepFailed, Walk, wrong_outcome

#: Expressions are quoted up to this length in messages.
QUOTED = 120


def condition(walk: Walk, place: Place, source: str, more: Mapping[str, Json] | None = None) -> Advance[bool]:
    """Whether the expression is true; StepFailed unless it is true or false. `more` are roots of this place alone."""
    (value,) = yield from _evaluate(walk, place, (source,), more)
    if isinstance(value, bool):
        return value
    if value is NOTHING:
        was = "to nothing: a name that it reads is missing ($exists asks whether one is there)"
    else:
        was = f"to {_kind(value)}; it must be true or false"
    raise StepFailed(f'Step "{place.step}": the condition evaluated {was}: {_quoted(source)}')


def template_values(
    walk: Walk, place: Place, sources: tuple[str, ...], more: Mapping[str, Json] | None = None
) -> Advance[list[Json]]:
    """One value a source, all under one shared limit; StepFailed when one fails or selects nothing."""
    if not sources:
        return []
    values = yield from _evaluate(walk, place, sources, more)
    for source, value in zip(sources, values, strict=True):
        if value is NOTHING:
            raise StepFailed(f'Step "{place.step}": the expression evaluated to nothing: {_quoted(source)}')
    return values


def plain_text(walk: Walk, place: Place, text: str) -> Advance[str]:
    """A text that cannot refer to the environment (query, message), with its expressions in place."""
    values = yield from template_values(walk, place, render11.collect(text))
    return render11.fill_plain(text, values)


def matches(place: Place, pairs: tuple[tuple[str, str], ...]) -> Advance[dict[tuple[str, str], bool]]:
    """Whether each pattern occurs in its text; StepFailed when a pattern cannot be searched for."""
    if not pairs:
        return {}
    effect = MatchPatterns(pairs=pairs)
    outcome = yield effect
    if isinstance(outcome, ExpressionFailed):
        pattern = pairs[outcome.index][0]
        raise StepFailed(
            f'Step "{place.step}": the pattern {_quoted(pattern)} cannot be searched for: {outcome.reason}'
        )
    if not isinstance(outcome, Matched):
        raise wrong_outcome(effect, outcome)
    return dict(zip(pairs, outcome.found, strict=True))


def _evaluate(
    walk: Walk, place: Place, sources: tuple[str, ...], more: Mapping[str, Json] | None
) -> Advance[list[MaybeJson]]:
    effect = Evaluate(sources=sources, scope=walk.scope(more))
    outcome = yield effect
    if isinstance(outcome, ExpressionFailed):
        raise StepFailed(_message(place, sources[outcome.index], outcome))
    if not isinstance(outcome, Evaluated):
        raise wrong_outcome(effect, outcome)
    return list(outcome.values)


def _message(place: Place, source: str, failed: ExpressionFailed) -> str:
    where = "" if failed.position is None else f" (at character {failed.position})"
    return f'Step "{place.step}": the expression failed: {failed.reason.rstrip(".")}{where}: {_quoted(source)}'


def _quoted(source: str) -> str:
    return source.strip()[:QUOTED]


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"
