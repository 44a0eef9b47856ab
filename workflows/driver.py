"""The driver performs effects and writes events; it is the only code that does both (design 2).

One loop for all: the worker (a database journal), the command line (a journal in memory), tests.
"""

from __future__ import annotations

import enum
from typing import Protocol

from workflows.engine.effects import (
    AskModel,
    AskPerson,
    CallTool,
    Decision,
    Evaluate,
    Fingerprint,
    MatchPatterns,
    Pause,
    ReadEnvironment,
)
from workflows.engine.events import EngineEvent
from workflows.engine.machine import run
from workflows.engine.situation import Situation
from workflows.spec.model import Spec
from workflows.world import World


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

    def pause(self, pause: Pause) -> Decision | None:
        """The decision, when there is one at once; None when the pause is stored."""

    def still_mine(self) -> None:
        """Raise when the run was lost; asked immediately before a request leaves."""


def drive(spec: Spec, situation: Situation, world: World, journal: Journal) -> Ending:
    """Walk the generator to its next stored pause or its end."""
    generator = run(spec, situation)
    answer: object = None
    try:
        while True:
            try:
                item = generator.send(answer)
            except StopIteration:
                return Ending.ENDED
            answer = None
            if isinstance(item, AskPerson):
                answer = journal.pause(item.pause)
                if answer is None:
                    return Ending.PAUSED
            elif isinstance(item, AskModel | CallTool):
                journal.opening(item, item.tool if isinstance(item, CallTool) else world.provider)
                answer = world.call(item, journal.still_mine)
                journal.closing(answer)
            elif isinstance(item, Evaluate | MatchPatterns | ReadEnvironment | Fingerprint):
                answer = world.look(item)
            else:
                journal.note(item)
    finally:
        generator.close()
