"""How a pause crosses from the driver (floor 2) to the approvals app (floor 3), without an import upward.

`approvals` registers the one implementation in its `AppConfig.ready`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from workflows.actors import Actor
from workflows.engine.effects import Decision, Pause
from workflows.engine.values import Json

if TYPE_CHECKING:
    from workflows.models import Run


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A person has to decide."""


@dataclass(frozen=True, kw_only=True)
class Decided:
    """A rule or a checker decided at once: no record, no pause."""

    decision: Decision


@dataclass(frozen=True, kw_only=True)
class Reset:
    """What an operator set back: `what` is `cursor`, `lock`, `incident`, `seen` or `wait`; `details` are JSON.

    No secrets are in them. `run` is the one that held it, where there is one.
    """

    workspace: str
    agent_id: str
    what: str
    run: str = ""
    details: Mapping[str, Json] = field(default_factory=dict)


class CannotPause(Exception):
    """The run cannot be stored as waiting (its state is over the limit); the text says why. The run fails with it."""


Consideration: TypeAlias = Ask | Decided


class Desk(Protocol):
    """The approvals side of a run."""

    def consider(self, run: Run, pause: Pause) -> Consideration:
        """Called outside any transaction, before a pause is stored: Decided where the policy's rules decided."""

    def decided(self, run: Run, pause: Pause, decision: Decision) -> None:
        """Write the proof of a rule's decision. Called inside the driver's transaction."""

    def open(self, run: Run, pause: Pause) -> str:
        """Store the record and the request and answer the key. Called inside the driver's transaction.

        A request that the run does not wait for is opened once, however often its step is entered again.
        """

    def outputs(self, run: Run) -> dict[str, Any] | None:
        """What codec.outputs_json makes, of a waiting run: it lives in the run's record. None when that is gone."""

    def on_cancel(self, run: Run, actor: Actor, reason: str) -> dict[str, Any] | None:
        """Claim the waiting run's record inside the canceller's transaction; its value, or None when it is gone."""

    def note(self, act: str, run: Run, actor: Actor, reason: str, successor: Run | None = None) -> None:
        """Write the audit entry of an act on a run (`cancel`, `retry`, `give_up`), inside the caller's transaction.

        `successor` is the run that goes on because of it.
        """

    def note_reset(self, what: Reset, actor: Actor, reason: str) -> None:
        """Write the audit entry of an operator's reset (act `reset`), inside the caller's transaction."""


_desk: Desk | None = None


def register(desk: Desk) -> None:
    """Make this the desk that the driver and the services use."""
    global _desk
    _desk = desk


def desk() -> Desk:
    """The registered desk; RuntimeError when the approvals app is not installed."""
    if _desk is None:
        raise RuntimeError("No desk is registered: add 'approvals' to INSTALLED_APPS.")
    return _desk
