"""Performs the engine's effects with the adapters of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from workflows import pacing
from workflows.adapters.environment import Environment
from workflows.adapters.evaluator import Evaluator
from workflows.engine.effects import (
    AskModel,
    CallTool,
    Evaluate,
    Evaluated,
    ExpressionFailed,
    Fingerprint,
    HttpCall,
    Matched,
    MatchPatterns,
    ModelFailed,
    ModelGate,
    ModelMalformed,
    ModelObject,
    ModelText,
    ReadEnvironment,
    ToolFailed,
    ToolOutput,
)
from workflows.pacing import Pacer
from workflows.waits import Clock, process_clock

ModelAnswer = ModelText | ModelGate | ModelObject | ModelMalformed | ModelFailed


class ModelPort(Protocol):
    """One model call; never retries by itself."""

    def ask(self, effect: AskModel) -> ModelAnswer:
        """The answer, or why there is none."""


class ToolPort(Protocol):
    """One attempt of a tool call."""

    def call(self, call: HttpCall, *, deadline_check: Callable[[], None]) -> ToolOutput | ToolFailed:
        """`deadline_check` is asked immediately before the request leaves and raises when it must not."""


@dataclass(frozen=True, kw_only=True)
class World:
    """What a run can reach: expressions, the environment, one model, tools.

    `clock` and `pacer` are what it waits by before a call. With `waits` False it neither waits nor takes slots: a
    replay calls nobody who would need time (engine semantics 16).
    """

    evaluator: Evaluator
    environment: Environment
    model: ModelPort
    tools: ToolPort
    provider: str = "model"
    clock: Clock = process_clock
    pacer: Pacer = pacing.in_this_process
    waits: bool = True

    def look(
        self, effect: Evaluate | MatchPatterns | ReadEnvironment | Fingerprint
    ) -> Evaluated | Matched | ExpressionFailed | Mapping[str, str | None]:
        """Perform an effect that stays inside the process (or its guarded child)."""
        if isinstance(effect, Evaluate):
            return self.evaluator.evaluate(effect)
        if isinstance(effect, MatchPatterns):
            return self.evaluator.match(effect)
        if isinstance(effect, ReadEnvironment):
            return self.environment.read(effect.names)
        return dict(self.environment.fingerprint(effect.names))

    def call(
        self, effect: AskModel | CallTool, still_mine: Callable[[], None]
    ) -> ModelAnswer | ToolOutput | ToolFailed:
        """Perform an effect that leaves the process, once."""
        if isinstance(effect, AskModel):
            still_mine()
            return self.model.ask(effect)
        return self.tools.call(effect.call, deadline_check=still_mine)
