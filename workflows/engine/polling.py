"""A poll as a generator: calls its tool, takes the items of the answer, gives each its key (spec 1.2, Triggers).

Like a run it yields effects, is sent each one's outcome, and touches nothing itself.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from workflows.engine import jsontext, machine, tools
from workflows.engine.calling import Purpose
from workflows.engine.effects import Effect, Evaluate, Evaluated, ExpressionFailed
from workflows.engine.evaluating import QUOTED
from workflows.engine.events import EngineEvent
from workflows.engine.situation import Situation
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.engine.vars import VarsError
from workflows.engine.walk import Advance, Place, StepFailed, Walk, wrong_outcome
from workflows.spec.model import Spec
from workflows.spec.patterns import NAMES_VARS
from workflows.spec.trigger_model import PollTrigger

#: Items of one answer. More would hold up everything else for too long.
MOST_ITEMS: Final = 10_000

#: No step can be called so: the name is reserved.
_PLACE: Final = Place(index=0, step="trigger")


class PollFailed(Exception):
    """The answer cannot be used; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One item of an answer. `index` is where it stands in it, `key` what tells it from every other."""

    index: int
    key: str
    value: Json


@dataclass(frozen=True, kw_only=True)
class Polled:
    """All items of an answer in order, and where to go on from; NOTHING keeps the old position."""

    items: tuple[Item, ...]
    cursor: MaybeJson


def poll(spec: Spec, trigger: PollTrigger, cursor: Json) -> Generator[EngineEvent | Effect, Any, Polled]:
    """Ask once, from the position `cursor` on. PollFailed when nothing may be made of it."""
    walk = Walk(spec=spec, situation=Situation(input=""), outputs={}, stored=None)
    try:
        walk.variables = yield from machine.variables(walk)
        purpose = Purpose(what="poll", roots={"cursor": cursor})
        answer = yield from tools.call_inside(walk, _PLACE, trigger.tool, purpose)
    except (VarsError, StepFailed) as problem:
        raise PollFailed(str(problem).removeprefix(f'Step "{_PLACE.step}": ')) from problem
    values = _listed((yield from _read(walk, trigger.items, answer, '"items"')))
    if len(values) > MOST_ITEMS:
        raise PollFailed(
            f'"items" came to {len(values)} items, and a poll takes {MOST_ITEMS} at most: let the tool ask for fewer '
            "at a time"
        )
    items = []
    for index, value in enumerate(values):
        key = yield from _read(walk, trigger.key, value, f'"key" of items[{index}]')
        items.append(Item(index=index, key=_key(key, index), value=value))
    position: MaybeJson = NOTHING
    if trigger.cursor is not None:
        position = yield from _read(walk, trigger.cursor, answer, '"cursor"')
    return Polled(items=tuple(items), cursor=NOTHING if position is None else position)


def _read(walk: Walk, source: str, value: MaybeJson, what: str) -> Advance[MaybeJson]:
    """What the expression makes of a value: of nothing and of null, nothing."""
    if value is NOTHING or value is None:
        return NOTHING
    effect = Evaluate(sources=(source,), scope=_root(walk, source, value))
    outcome = yield effect
    if isinstance(outcome, ExpressionFailed):
        _failed(what, source, outcome)
    if not isinstance(outcome, Evaluated):
        raise wrong_outcome(effect, outcome)
    return outcome.values[0]


def _root(walk: Walk, source: str, value: Json) -> Json:
    """The value itself; beside the names of an object the vars, where the expression names them."""
    if isinstance(value, dict) and NAMES_VARS.search(source):
        return {**value, "vars": dict(walk.variables)}
    return value


def _listed(found: MaybeJson) -> list[Json]:
    """JSONata gives nothing where it finds nothing, and a single value by itself."""
    if found is NOTHING or found is None:
        return []
    return found if isinstance(found, list) else [found]


def _key(found: MaybeJson, index: int) -> str:
    if isinstance(found, str) and found:
        return found
    if isinstance(found, int | float) and not isinstance(found, bool):
        return jsontext.number_text(found)
    raise PollFailed(
        f'"key" of items[{index}] came to {_kind(found)}; it must be a text that is not empty, or a number'
    )


def _kind(found: MaybeJson) -> str:
    """In words, and never the value: it is somebody's data."""
    if found is NOTHING or found is None:
        return "nothing"
    if isinstance(found, bool):
        return "true or false"
    if isinstance(found, str):
        return "an empty text"
    return "a list" if isinstance(found, list) else "an object"


def _failed(what: str, source: str, failed: ExpressionFailed) -> NoReturn:
    where = "" if failed.position is None else f" (at character {failed.position})"
    raise PollFailed(f"{what} failed: {failed.reason.rstrip('.')}{where}: {_quoted(source)}")


def _quoted(source: str) -> str:
    return source.strip()[:QUOTED]
