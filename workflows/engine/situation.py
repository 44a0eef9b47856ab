"""Everything a run starts from besides its spec: fresh, taken over, or resumed by a decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workflows.engine.effects import Decision, Phase
from workflows.engine.values import NOTHING, Json, MaybeJson, Outputs


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """What started the run. `headers` have lower-case names; `body` NOTHING means: take it from the input text."""

    headers: Mapping[str, str] = field(default_factory=dict)
    body: MaybeJson = NOTHING


@dataclass(frozen=True, kw_only=True)
class Position:
    """Where to enter. `before`: at `step_index`, from its start. `after`: with the step that follows it."""

    step_index: int = 0
    phase: Phase = "before"
    outputs: Outputs = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Situation:
    """`overrides` are vars given for this run (text or typed values).

    `decision` is the stored answer for the gate at `position`, if one was given. `replay` asks for a `StepCompleted`
    with `replayed=True` for every stored output before anything new (a successor run); a run that another worker
    takes over has them already. `edits` are applied to the action at `position` (a proposal that nobody decided yet);
    those of a decision are in the decision. `opened` says that the gate at `position` was opened before: its rules are
    not asked again. `root` is the id of the chain's first run, and `rebinds` how often the chain was bound to a changed
    spec, for idempotency keys (1.2). `purpose` `on_decision` is a run that only calls what a recorded request calls on
    its decision (1.2).
    """

    input: str
    trigger: Trigger = field(default_factory=Trigger)
    overrides: Mapping[str, Json] = field(default_factory=dict)
    position: Position = field(default_factory=Position)
    decision: Decision | None = None
    replay: bool = False
    edits: Mapping[str, Json] = field(default_factory=dict)
    opened: bool = False
    root: str | None = None
    rebinds: int = 0
    purpose: Literal["", "on_decision"] = ""

    @property
    def key_root(self) -> str | None:
        """What starts the idempotency keys: after a rebind a position is another step, and must not repeat a key."""
        return f"{self.root}-r{self.rebinds}" if self.root is not None and self.rebinds else self.root
