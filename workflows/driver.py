"""The driver performs effects and writes events; it is the only code that does both (design 2).

One loop for all: the worker (a database journal), the command line (a journal in memory), tests.
"""

from __future__ import annotations

import enum
from collections.abc import Generator
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from workflows import pacing
from workflows.engine import retrying
from workflows.engine.effects import (
    AskModel,
    AskPerson,
    CallTool,
    Decision,
    Effect,
    Evaluate,
    Fingerprint,
    Granted,
    IsStillValid,
    KeyEffect,
    KeyOutcome,
    MatchPatterns,
    Pause,
    ReadEnvironment,
    Recorded,
    ToolFailed,
    WentStale,
)
from workflows.engine.events import EngineEvent
from workflows.engine.machine import run
from workflows.engine.situation import Situation
from workflows.spec.model import Spec
from workflows.waits import Clock
from workflows.world import World

T = TypeVar("T")


class Ending(enum.Enum):
    """Why the driver stopped."""

    PAUSED = "paused"
    ENDED = "ended"


class Journal(Protocol):
    """Where a run is written."""

    def note(self, event: EngineEvent) -> None:
        """A fact, in order."""

    def opening(self, effect: AskModel | CallTool, name: str) -> None:
        """A call is about to leave the process."""

    def closing(self, outcome: object) -> None:
        """The call came back."""

    def pause(self, pause: Pause) -> Decision | Recorded | None:
        """The decision, when there is one at once; Recorded when nobody waits for it; None when the pause is stored."""

    def keep(self, effect: KeyEffect) -> KeyOutcome:
        """Do it on the store, and keep that the step is completed, both or neither."""

    def still_mine(self) -> None:
        """Raise when the run was lost; asked immediately before a request leaves."""

    def is_still_valid(self, granted: Granted) -> bool:
        """Whether the approval holds now, or something was called under it in time."""

    def attempts_made(self, effect: CallTool) -> int:
        """The attempts of this call that this run made before it was entered this time."""

    def holds_slot(self, target: str) -> bool:
        """Whether a slot of this target was taken for the next attempt earlier, and has come; asked once an attempt."""

    def wait(self, seconds: float, clock: Clock, slot: str = "") -> None:
        """Keep what is known, then wait before the next attempt; `slot` names the target whose slot is waited for.

        Raise when the run was given back instead: the wait is too long for a worker, or the process is about to end.
        """


def drive(spec: Spec, situation: Situation, world: World, journal: Journal) -> Ending:
    """Walk a run to its next stored pause or its end."""
    return perform(run(spec, situation), world, journal) or Ending.ENDED


def perform(generator: Generator[EngineEvent | Effect, Any, T], world: World, journal: Journal) -> T | Ending:
    """Walk a generator of the engine's: what it returns at its end, or PAUSED when a pause of it was stored."""
    answer: object = None
    try:
        while True:
            try:
                item = generator.send(answer)
            except StopIteration as end:
                returned: T = end.value
                return returned
            answer = None
            if isinstance(item, AskPerson):
                answer = journal.pause(item.pause)
                if answer is None:
                    return Ending.PAUSED
            elif isinstance(item, IsStillValid):
                answer = journal.is_still_valid(item.granted)
            elif isinstance(item, AskModel):
                answer = WentStale() if _ended(item, journal) else _attempt(item, world.provider, world, journal)
            elif isinstance(item, CallTool):
                answer = _call_tool(item, world, journal)
            elif isinstance(item, KeyEffect):
                answer = journal.keep(item)
            elif isinstance(item, Evaluate | MatchPatterns | ReadEnvironment | Fingerprint):
                answer = world.look(item)
            else:
                journal.note(item)
    finally:
        generator.close()


def _attempt(effect: AskModel | CallTool, name: str, world: World, journal: Journal) -> object:
    journal.opening(effect, name)
    answer = world.call(effect, journal.still_mine)
    journal.closing(answer)
    return answer


def _call_tool(effect: CallTool, world: World, journal: Journal) -> object:
    """Attempts of one call until it succeeds or is given up (engine semantics 14.6). The request is built already."""
    if _ended(effect, journal):
        return WentStale()
    # Never all of them: the failure of the last one and the end of the run are one commit.
    made = journal.attempts_made(effect)
    while True:
        # Asked once more after the wait for a turn, and no more once an attempt was made.
        if _take_turn(effect, world, journal) and _ended(effect, journal):
            return WentStale()
        answer = _attempt(effect, effect.tool, world, journal)
        made += 1
        if not isinstance(answer, ToolFailed):
            return answer
        verdict = retrying.after(effect.call, answer, attempts=made, now=world.clock.now())
        if isinstance(verdict, retrying.GiveUp):
            return replace(answer, error=verdict.error)
        if world.waits:
            journal.wait(verdict.seconds, world.clock)


def _ended(effect: AskModel | CallTool, journal: Journal) -> bool:
    """Whether the approval under which this would be the first call has come to its end (spec 1.2, `valid_for`)."""
    return effect.granted is not None and not journal.is_still_valid(effect.granted)


def _take_turn(effect: CallTool, world: World, journal: Journal) -> bool:
    """Wait for a slot of the call's host, where the tool is paced (engine semantics 14.7); whether it is."""
    if effect.call.pace is None or not world.waits:
        return False
    target, interval = pacing.target_of(effect.call), pacing.interval_of(effect.call)
    if not journal.holds_slot(target):
        _wait_for_slot(world.pacer.take(target, interval), target, world, journal)
    _wait_for_slot(world.pacer.enter(target, interval), target, world, journal)
    return True


def _wait_for_slot(seconds: float, target: str, world: World, journal: Journal) -> None:
    if seconds > 0:
        journal.wait(seconds, world.clock, slot=target)
