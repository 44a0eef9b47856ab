"""What the parts of a running generator share: where it stands, what it knows, how a step ends early."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from workflows.engine.effects import AskModel, CallTool, Decision, Effect, Granted, WentStale
from workflows.engine.events import EngineEvent
from workflows.engine.scope import scope
from workflows.engine.situation import Situation
from workflows.engine.values import Json, MaybeJson, Outputs
from workflows.spec.model import Spec, Step

T = TypeVar("T")
#: A stretch of the run: it yields events and effects, is sent outcomes, and returns what it was for.
Advance: TypeAlias = Generator[EngineEvent | Effect, Any, T]


class StepFailed(Exception):
    """The step cannot go on; the text is the run's failure message."""


class StepRejected(Exception):
    """A person said no; the text is the reason."""


class ApprovalEnded(Exception):
    """An approval came to its end before anything left the process under it: its gate is entered again."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A step and its position in the workflow."""

    index: int
    step: str


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a step produced. `ends` when the run is completed with it, whatever steps follow (1.2)."""

    output: MaybeJson
    confidence: float | None = None
    ends: bool = False


@dataclass(kw_only=True)
class Walk:
    """A run on its way. `outputs` grows with every step; `stored` is a decision that no gate has taken yet.

    `granted` is the approval with an end under which nothing has left the process yet. `begun` is the step whose start
    was told last. `ended` when a step said that the run is completed with it (1.2).
    """

    spec: Spec
    situation: Situation
    outputs: Outputs
    stored: Decision | None
    granted: Granted | None = None
    begun: int | None = None
    ended: bool = False
    variables: dict[str, Json] = field(default_factory=dict)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.spec.agent.workflow

    def place(self, index: int) -> Place:
        return Place(index=index, step=self.steps[index].step)

    def scope(self, more: Mapping[str, Json] | None = None) -> dict[str, Json]:
        """What an expression can read now; `more` are the roots that only this place has."""
        situation = self.situation
        read = scope(self.spec, self.outputs, situation.trigger, situation.input, self.variables)
        return {**read, **(more or {})}

    def step_outputs(self) -> Outputs:
        """The outputs of steps alone, without what their gates called."""
        names = {step.step for step in self.steps}
        return {name: output for name, output in self.outputs.items() if name in names}

    def edits_for(self, place: Place) -> Mapping[str, Json]:
        """What people changed of the action at this place before it was approved (1.2)."""
        stored = self.stored_for(place)
        if stored is not None:
            return stored.edits
        return self.situation.edits if place.index == self.situation.position.step_index else {}

    def stored_for(self, place: Place) -> Decision | None:
        """The stored decision, if it was given at this step and nothing took it."""
        return self.stored if self.stored is not None and self.stored.step_index == place.index else None


def outside(walk: Walk, effect: AskModel | CallTool) -> Advance[Any]:
    """The outcome of a call that leaves the process. ApprovalEnded when the approval that lets it go has ended."""
    outcome = yield effect if walk.granted is None else replace(effect, granted=walk.granted)
    if isinstance(outcome, WentStale):
        raise ApprovalEnded
    walk.granted = None
    return outcome


def wrong_outcome(effect: Effect, outcome: object) -> TypeError:
    """The error for a driver that answers an effect with something it is not promised."""
    return TypeError(f"{type(effect).__name__} cannot be answered with {type(outcome).__name__}")
