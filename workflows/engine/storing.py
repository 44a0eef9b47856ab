"""Steps on the store: `once`, `open` and `close` (spec 1.2). What is kept, under which key, and what the step gives.

The store itself is the driver's. Whatever a key or a value has to be is checked before it is asked.
"""

from __future__ import annotations

from typing import Final

from workflows.engine import evaluating, jsontext, keeping, render11
from workflows.engine.effects import (
    ClaimKey,
    CloseIncident,
    IncidentClosed,
    IncidentOpened,
    KeyClaimed,
    KeyEffect,
    KeyKept,
    KeyRefused,
    OpenIncident,
)
from workflows.engine.render11 import Data, Rendered
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.engine.walk import Advance, Done, Place, StepFailed, Walk, wrong_outcome
from workflows.spec.model import CloseStep, OnceStep, OpenStep

STEPS: Final = (OnceStep, OpenStep, CloseStep)
#: Bytes of a key that an author chooses.
MAX_KEY_BYTES: Final = 400
#: A key is quoted up to this length in messages.
_QUOTED: Final = 60


def keep(walk: Walk, place: Place, step: OnceStep | OpenStep | CloseStep) -> Advance[Done]:
    """What the step gives. StepFailed, with nothing written, when the key or the value cannot be kept.

    A step that this chain performed before is not performed again: an approval behind it may have come to its end,
    and what is done on the store is done.
    """
    before = _given_before(walk, place)
    if before is not NOTHING:
        return _done(step, before)
    effect = yield from _effect(walk, place, step)
    outcome = yield effect
    if isinstance(outcome, KeyRefused):
        raise StepFailed(f'Step "{place.step}": the store refused the key {_shown(effect.key)}: {outcome.reason}')
    if not isinstance(outcome, KeyKept) or type(outcome) is not _OUTCOMES[type(effect)]:
        raise wrong_outcome(effect, outcome)
    return _done(step, output_of(outcome))


def _done(step: OnceStep | OpenStep | CloseStep, output: Json) -> Done:
    """A repeat is the end of the run, unless the step lets it go on."""
    return Done(output=output, ends=isinstance(step, OnceStep) and step.on_repeat == "stop" and not output["first"])


_OUTCOMES: Final[dict[type[KeyEffect], type[KeyKept]]] = {
    ClaimKey: KeyClaimed,
    OpenIncident: IncidentOpened,
    CloseIncident: IncidentClosed,
}


def output_of(outcome: KeyKept) -> dict[str, Json]:
    """The step's output (spec 1.2). The driver keeps it in the transaction that wrote to the store."""
    match outcome:
        case KeyClaimed(holder=None):
            return {"first": True}
        case KeyClaimed(holder=holder):
            return {"first": False, "run": holder}
        case IncidentOpened(opened=opened, incident=incident):
            return {"opened": opened, "incident": incident}
        case IncidentClosed(incident=None):
            return {"closed": False}
        case IncidentClosed(incident=closed):
            return {"closed": True, "incident": closed}


def _given_before(walk: Walk, place: Place) -> MaybeJson:
    """What this very step gave earlier in the chain; NOTHING if it gave nothing, or if its name is not its own."""
    alike = sum(step.step == place.step for step in walk.steps)
    return walk.outputs.get(place.step, NOTHING) if alike == 1 else NOTHING


def _effect(walk: Walk, place: Place, step: OnceStep | OpenStep | CloseStep) -> Advance[KeyEffect]:
    tree = [step.key, step.value if isinstance(step, OpenStep) else None]
    values = yield from evaluating.template_values(walk, place, render11.collect(tree))
    filled_key, filled_value = render11.fill(tree, values)
    key = _key(place, filled_key)
    match step:
        case OnceStep():
            return ClaimKey(step=place.step, index=place.index, key=key, ttl=step.ttl, release=step.release_on_failure)
        case OpenStep():
            # References stay references: no secret is written (engine semantics 22, ST-5).
            value = render11.shown(filled_value)
            _check_kept(place, key, value)
            return OpenIncident(step=place.step, index=place.index, key=key, value=value, ttl=step.ttl)
        case CloseStep():
            return CloseIncident(step=place.step, index=place.index, key=key)


def _key(place: Place, filled: Rendered) -> str:
    """The key as text: what is no text, too long or cannot be stored is refused."""
    value = filled.value if isinstance(filled, Data) else render11.shown(filled)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise StepFailed(f'Step "{place.step}": its key must be a text; it is {_kind(value)}.')
    key = jsontext.as_text(value)
    if not key.strip():
        raise StepFailed(f'Step "{place.step}": its key {_shown(key)} is empty; a key has 1 to {MAX_KEY_BYTES} bytes.')
    try:
        jsontext.check(key)
    except jsontext.NotJson as problem:
        raise StepFailed(f'Step "{place.step}": its key {_shown(key)} cannot be kept: {problem.reason}.') from problem
    size = len(key.encode())
    if size > MAX_KEY_BYTES:
        raise StepFailed(
            f'Step "{place.step}": its key {_shown(key)} takes {size} bytes; a key has at most {MAX_KEY_BYTES}. '
            "Use a shorter part of it, or a hash that the sender gives."
        )
    return key


def _check_kept(place: Place, key: str, value: Json) -> None:
    """Refuse before anything is written what could not be kept as the step's output afterwards."""
    incident = {"key": key, "value": value, "openedAt": "2026-01-01T00:00:00.000Z", "runId": "0" * 36}
    keeping.check_output(place.step, {"opened": False, "incident": incident})


def _shown(key: str) -> str:
    """The key in a message, where NUL and line ends stand escaped."""
    text = key if len(key) <= _QUOTED else f"{key[:_QUOTED]}…"
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text) + '"'


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    return "a list" if isinstance(value, list) else "an object"
