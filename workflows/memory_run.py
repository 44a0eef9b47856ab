"""One run in this process without a database: `run_spec`, library use, tests (engine semantics 21.1).

Only a step on the store opens one: the project's, so that a command and the server know of each other's keys.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError

from statestore.clock import now
from workflows.driver import drive
from workflows.engine import state
from workflows.engine.effects import (
    AskModel,
    CallTool,
    ClaimKey,
    Decision,
    Granted,
    KeyClaimed,
    KeyEffect,
    KeyOutcome,
    KeyRefused,
    Pause,
    Recorded,
)
from workflows.engine.events import AwaitingApproval, Event, Failed
from workflows.engine.situation import Situation
from workflows.engine.values import Json
from workflows.keyed import Keys, leaves_no_trace
from workflows.models import WORKSPACE
from workflows.spec.model import Spec
from workflows.spec.policy_model import Policy
from workflows.times import rfc3339
from workflows.waits import Clock, Waiter
from workflows.world import World

logger = logging.getLogger("kampong.driver")

State = dict[str, Any]
#: Answers a pause, or None to leave it waiting.
Asker = Callable[[Pause], Decision | None]
Listener = Callable[[Event, State], None]


class MemoryJournal:
    """Keeps the state in memory and tells the listener each event after the state has been updated with it."""

    def __init__(self, keys: Keys, ask: Asker, listener: Listener, waiter: Waiter | None = None) -> None:
        self.state: State = state.new_state()
        self._keys = keys
        self._held: list[str] = []
        self._acted = False
        self._ask = ask
        self._listener = listener
        self._waiter = waiter

    def note(self, event: Event) -> None:
        self.state = state.apply(self.state, event)
        if isinstance(event, Failed) and not self._acted:
            self._release()
        self._listener(event, self.state)

    def opening(self, effect: AskModel | CallTool, name: str) -> None:
        """A run in memory ends with its process: nothing is kept but whether it can have changed anything."""
        self._acted = self._acted or not leaves_no_trace(effect)

    def closing(self, outcome: object) -> None:
        """Nothing to keep."""

    def keep(self, effect: KeyEffect) -> KeyOutcome:
        """On the project's database, each statement for itself: there is no record of the run to be kept with it."""
        try:
            outcome = self._keys.perform(effect).outcome
        except (DatabaseError, InterfaceError) as error:
            return KeyRefused(reason=_unusable(error))
        if isinstance(effect, ClaimKey) and effect.release and outcome == KeyClaimed():
            self._held.append(effect.key)
        return outcome

    def _release(self) -> None:
        """Give back what this run took: it failed, and did nothing yet (spec 1.2)."""
        held, self._held = self._held, []
        for key in held:
            try:
                self._keys.give_back(key)
            except (DatabaseError, InterfaceError) as error:
                # The run has failed already, and says why. The key is free when its time is over.
                logger.warning("the key %r is not given back: %s", key, _unusable(error))

    def still_mine(self) -> None:
        """Nobody else can take a run in memory."""

    def is_still_valid(self, granted: Granted) -> bool:
        """By this process's clock. The engine asks no more once something was called."""
        return now() < datetime.fromisoformat(granted.decision.valid_until or "")

    def attempts_made(self, effect: CallTool) -> int:
        """A run in memory enters a step once."""
        return 0

    def holds_slot(self, target: str) -> bool:
        """Every slot is waited for here."""
        return False

    def wait(self, seconds: float, clock: Clock, slot: str = "") -> None:
        """Here and now, however long it takes."""
        if self._waiter is not None:
            self._waiter(seconds, slot)
        clock.sleep(seconds)

    def pause(self, pause: Pause) -> Decision | Recorded | None:
        if pause.policy.mode == "record":
            return Recorded(key=None)
        decided = by_rule(pause)
        if decided is not None:
            return decided
        self.note(AwaitingApproval(step=pause.step, kind=pause.kind, reason=pause.reason, tool=pause.tool))
        decision = self._ask(pause)
        if decision is not None:
            # The decision is taken: nobody is waited for any more, before any work starts (engine semantics 23.7).
            self.state = state.accepted(self.state)
        return decision


def run_in_memory(
    spec: Spec,
    situation: Situation,
    world: World,
    *,
    ask: Asker,
    listener: Listener,
    waiter: Waiter | None = None,
) -> State:
    """Drive to the end, or to a pause that `ask` leaves open; the state then."""
    root = situation.root or str(uuid.uuid4())
    keys = Keys(workspace=WORKSPACE, agent_id=spec.agent.id, root=root)
    journal = MemoryJournal(keys, ask, listener, waiter)
    drive(spec, situation, world, journal)
    return journal.state


def _unusable(error: Exception) -> str:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return f"the project's database cannot be used ({reason}); check DATABASE_URL, and that it is migrated"


def by_rule(pause: Pause) -> Decision | None:
    """The decision that the policy's own rules took when the gate opened, None where a person has to (spec 1.2)."""
    verdict = pause.verdict
    if verdict is None or verdict.approved is None:
        return None
    reason = verdict.reason or None
    decision = decision_for(pause, approved=verdict.approved, reason=reason, by=verdict.rule, surface="rule")
    # The run keeps the decision: whoever takes it over must not take a no that goes on for its end.
    return replace(decision, goes_on=not verdict.approved and pause.policy.goes_on_after_no)


def decision_for(
    pause: Pause,
    *,
    approved: bool,
    reason: str | None,
    by: str,
    surface: str = "cli",
    answers: Json | None = None,
) -> Decision:
    """A decision given at once, for exactly this pause."""
    return Decision(
        approved=approved,
        answers=answers,
        reason=reason,
        step_index=pause.step_index,
        kind=pause.kind,
        tool=pause.tool,
        digest=pause.digest,
        by=by,
        surface=surface,
        phase=pause.phase,
        valid_until=ends(pause.policy, now()) if approved else None,
    )


def ends(policy: Policy, moment: datetime) -> str | None:
    """Until when something has to be called under an approval given now; None where it holds for ever."""
    return rfc3339(moment + timedelta(seconds=policy.valid_for)) if policy.valid_for else None
