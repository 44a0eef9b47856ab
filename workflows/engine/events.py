"""What the engine reports: facts, in order (engine semantics 2.3).

`AwaitingApproval`, `Cancelled` and `Interrupted` are never yielded by the engine; the driver and the services write
them into the same numbered sequence. `Expired` is, where a tool was called on it (`on_expire`, 1.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from workflows.engine.values import Json, MaybeJson


@dataclass(frozen=True, kw_only=True)
class StepStarted:
    step: str
    index: int


@dataclass(frozen=True, kw_only=True)
class StepCompleted:
    """`index` is the step's position; `replayed` marks an output that an earlier run of the chain produced.

    `within` marks what happened inside a step that goes on: a check, or a tool called on a decision or an expiry (1.2);
    `step` is then `<step>.check`, `<step>.on_decision` or `<step>.on_expire`. `guarded` says that somebody is asked
    before the run leaves the step; `ends` that it never does, because the run is completed with it (1.2).
    """

    step: str
    index: int
    output: MaybeJson
    confidence: float | None = None
    replayed: bool = False
    within: bool = False
    guarded: bool = False
    ends: bool = False


@dataclass(frozen=True, kw_only=True)
class AwaitingApproval:
    step: str
    kind: str
    reason: str
    tool: str | None = None
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Completed:
    """`output` maps step names to outputs; steps without a value are left out.

    `inner` names what is kept beside the outputs and is none: what the gates of steps called (1.2).
    """

    output: dict[str, Json]
    inner: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Rejected:
    step: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Failed:
    error: str
    step: str | None = None


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    error: str


@dataclass(frozen=True, kw_only=True)
class Expired:
    error: str
    step: str | None = None


@dataclass(frozen=True, kw_only=True)
class Interrupted:
    error: str
    step: str | None = None


EngineEvent: TypeAlias = StepStarted | StepCompleted | Completed | Rejected | Failed | Expired
Event: TypeAlias = EngineEvent | AwaitingApproval | Cancelled | Interrupted
