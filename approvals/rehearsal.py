"""What would be asked now, worked out without calling anybody: for an edit, and under a spec that changed.

The engine is driven from where the run waits until it asks again, outside any transaction. Only what stays inside the
process is answered; whatever else the engine wants ends the rehearsal, and the text says why.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from approvals.records import Record
from workflows import codec
from workflows.adapters import evaluator
from workflows.adapters.environment import Environment
from workflows.engine import vars
from workflows.engine.effects import (
    AskPerson,
    Effect,
    Evaluate,
    Fingerprint,
    MatchPatterns,
    Pause,
    ReadEnvironment,
)
from workflows.engine.events import EngineEvent, Failed, StepStarted
from workflows.engine.machine import run
from workflows.engine.situation import Position, Situation
from workflows.engine.values import Json, Outputs
from workflows.spec.model import Spec


class NoGate(Exception):
    """The run would not ask here; the text says what it would do, or why it would fail."""


def situation_of(record: Record, *, outputs: Outputs, edits: Mapping[str, Json] | None = None) -> Situation:
    """Where the run of this record waits, with these outputs in place of its own."""
    position = Position(step_index=record["step_index"], phase=record["phase"], outputs=outputs)
    return Situation(
        input=record["input"],
        trigger=codec.trigger_from(record["trigger"]),
        overrides=record["overrides"],
        position=position,
        edits=edits or {},
    )


def rehearse(spec: Spec, situation: Situation, marks: Mapping[str, str]) -> Pause:
    """The gate at the situation's position as it would be asked now; NoGate when there is none.

    The rules of the gate are not asked again, and no secret is read. `marks` are those of the process that paused: this
    one may have another environment.
    """
    position = situation.position
    started = run(spec, replace(situation, opened=True, decision=None, replay=False))
    readable = frozenset(vars.names_needed(spec, situation.overrides))
    answer: Any = None
    try:
        while True:
            item = started.send(answer)
            if isinstance(item, AskPerson):
                break
            answer = None if isinstance(item, StepStarted) else _answer(item, readable, marks)
    finally:
        started.close()
    pause = item.pause
    if (pause.step_index, pause.phase) != (position.step_index, position.phase):
        raise NoGate(f'the run would go on to step "{pause.step}" without asking here')
    return pause


def _answer(item: Effect | EngineEvent, readable: frozenset[str], marks: Mapping[str, str]) -> Any:
    match item:
        case Evaluate():
            return evaluator.shared().evaluate(item)
        case MatchPatterns():
            return evaluator.shared().match(item)
        case ReadEnvironment() if readable.issuperset(item.names):
            return _environment().read(item.names)
        case Fingerprint():
            here = _environment().fingerprint(item.names)
            return {name: marks.get(name, mark) for name, mark in here.items()}
        case Failed():
            raise NoGate(item.error)
    raise NoGate("the run would go on here without asking anybody")


def _environment() -> Environment:
    return Environment(os.environ, key=settings.SECRET_KEY)
