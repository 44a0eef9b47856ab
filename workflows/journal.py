"""The driver's pen: events, attempts and the run row, each write fenced by the lease (design 3.1).

Commit points are: before each outside call (the attempt), after it (outcome and events), a pause, the end. Events in
between go with the next commit, so a step without an outside call costs no transaction of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Greatest

from statestore.clock import DbNow, now
from statestore.conf import value as setting
from statestore.faults import point
from workflows import codec, keyed
from workflows.crossing import crossing
from workflows.desk import CannotPause, Decided, desk
from workflows.draining import draining
from workflows.engine import jsontext, state, storing
from workflows.engine.effects import (
    AskModel,
    CallTool,
    ClaimKey,
    Decision,
    Granted,
    KeyEffect,
    KeyOutcome,
    KeyRefused,
    ModelFailed,
    Pause,
    Recorded,
    ToolFailed,
)
from workflows.engine.events import (
    AwaitingApproval,
    Completed,
    Event,
    Expired,
    Failed,
    Interrupted,
    Rejected,
    StepCompleted,
    StepStarted,
)
from workflows.engine.retrying import LONGEST_SECONDS
from workflows.engine.values import Outputs
from workflows.models import Attempt, Run, RunEvent, Status
from workflows.pooling import give_connection_back
from workflows.waiting import attempts_made, begun_under
from workflows.waits import WORKER_WAITS_SECONDS, Clock, Waiter

logger = logging.getLogger("kampong.driver")

#: A run that waits here is looked at so often: one that was cancelled frees its worker.
LOOK_SECONDS = 2.0


class LeaseLost(Exception):
    """The run is no longer ours: taken over, cancelled, or our lease ran out. Write nothing, call nothing more."""


class HandedBack(Exception):
    """The process is about to end: the run is queued again at this step, for another worker."""


def payload_of(event: Event) -> str:
    """The stored form of an event: its wire form without outputs, which are read from the run."""
    wire = state.event_json(event)
    wire.pop("type")
    if isinstance(event, StepCompleted | Completed):
        wire.pop("output", None)
    if isinstance(event, StepStarted | StepCompleted):
        wire["index"] = event.index
    if isinstance(event, Completed) and event.inner:
        wire["inner"] = list(event.inner)
    return jsontext.dumps(wire)


def event_row(run: Run, number: int, event: Event) -> RunEvent:
    """An unsaved row for one event."""
    return RunEvent(
        workspace=run.workspace,
        run=run,
        number=number,
        type=state.event_json(event)["type"],
        payload=payload_of(event),
        at=now(),
    )


def _step_under_way(run: Run) -> int | None:
    """The step whose start is the last thing that was told of this run, when it was entered and not left."""
    if not run.last_event:
        return None
    row = RunEvent.objects.filter(run=run, number=run.last_event, type="step_started").first()
    return None if row is None else jsontext.loads(row.payload)["index"]


#: Hears each event of a run that this process drives, for whoever watches here.
Listener: TypeAlias = Callable[[Event], None]


class RunJournal:
    """Writes one run while this process holds its lease. Every method raises LeaseLost when it no longer does."""

    def __init__(self, run: Run, tell: Listener | None = None, waiter: Waiter | None = None) -> None:
        self.run = run
        self._tell = tell
        self._waiter = waiter
        self._token = run.lease_token
        self._events: list[Event] = []
        self._last_event = run.last_event
        self._outputs: Outputs = codec.load_outputs(run.outputs)
        self._index = self._entered = run.step_index
        self._phase = run.phase
        self._step = run.step
        self._attempts = run.attempts.count()
        self._open: Attempt | None = None
        self._outcome: str | None = None
        self._under_way = _step_under_way(run)
        self._slot = run.slot_target
        self._held_keys = keyed.load_held(run.held_keys)
        self._kept: StepCompleted | None = None
        self.renewed_at = time.monotonic()

    @property
    def lease_token(self) -> int:
        """The fence: the number that this process's claim of the run was given."""
        return self._token

    def still_mine(self) -> None:
        """Raise LeaseLost when the lease may have run out: asked immediately before a request leaves."""
        if time.monotonic() - self.renewed_at >= setting("KAMPONG_LEASE_SECONDS"):
            raise LeaseLost(f"run {self.run.uuid}: the lease ran out before the call")

    # What the driver tells ----------------------------------------------------------------------------------

    def note(self, event: Event) -> None:
        """Take an event. It is committed with the next commit point; the end of the run is one."""
        if isinstance(event, StepStarted):
            if draining.is_set():
                self._hand_back()
            if self._outcome is not None:
                self._commit_outcome()
            self._index, self._phase, self._step = event.index, "before", event.step
            self._entered = event.index
            if event.index == self._under_way:
                return  # This entry of the step was told before the run was given back, or taken over.
        elif isinstance(event, StepCompleted):
            self._completed(event)
        elif isinstance(event, Failed) and event.step is not None:
            # A step can fail after it completed (a guardrail without fallback): a retry enters it again.
            self._index = self._entered
        if event != self._kept:
            self._events.append(event)
        self._kept = None
        if isinstance(event, Completed | Rejected | Failed | Expired):
            self._finish(event)
        if self._tell is not None:
            self._tell(event)

    def _completed(self, event: StepCompleted) -> None:
        self._outputs[event.step] = event.output
        if not event.replayed and not event.within:
            # A guarded step is not left before its gate was passed: whoever takes the run over enters it there.
            self._index, self._phase = (event.index, "after") if event.guarded else (event.index + 1, "before")
            if event.ends:
                self._index = event.index  # Nobody must ever enter what comes behind it.

    def opening(self, effect: AskModel | CallTool, name: str) -> None:
        """Commit the attempt row of a call that is about to leave; renews the lease in the same statement."""
        point("run.before_attempt")
        self._attempts += 1
        attempt = Attempt(
            workspace=self.run.workspace,
            run=self.run,
            step_index=effect.index,
            step=effect.step,
            n=self._attempts,
            kind="model" if isinstance(effect, AskModel) else "tool",
            name=name,
            started_at=now(),
            safe=keyed.leaves_no_trace(effect),
        )
        with transaction.atomic():
            self._write(not_before=None, slot_target="")
            attempt.save(force_insert=True)
        self._open = attempt
        self._outcome = None
        # The call may take minutes: another worker can have the connection meanwhile.
        give_connection_back()
        point("run.attempt_open")

    def closing(self, outcome: object) -> None:
        """The call came back. The attempt closes in the transaction that appends what followed from it."""
        point("run.called")
        self._outcome = outcome.error if isinstance(outcome, ModelFailed | ToolFailed) else "ok"

    def keep(self, effect: KeyEffect) -> KeyOutcome:
        """One transaction for the store and for the step that is completed with it (spec 1.2, *Steps on the store*).

        Whoever takes the run over is behind the step, or asks the store as if nobody had. Where nothing is written,
        the step's end goes with the next commit like any other.
        """
        point("run.before_key")
        with transaction.atomic():
            # The fence first: the store's rows are locked in the same order by all.
            self._write()
            performed = keyed.keys_of(self.run).perform(effect)
            outcome = performed.outcome
            if performed.wrote and not isinstance(outcome, KeyRefused):
                if isinstance(effect, ClaimKey) and effect.release:
                    self._held_keys.append(keyed.Held(key=effect.key, ttl=effect.ttl, step=effect.step))
                kept = StepCompleted(step=effect.step, index=effect.index, output=storing.output_of(outcome))
                self._completed(kept)
                self._events.append(kept)
                point("run.key_taken")
                self._write(held_keys=keyed.dump_held(self._held_keys))
                self._kept = kept
        point("run.key_kept")
        return outcome

    def is_still_valid(self, granted: Granted) -> bool:
        """By the database's clock; what was begun in time is finished, also by whoever takes the run over."""
        until = datetime.fromisoformat(granted.decision.valid_until or "")
        moment = Run.objects.filter(pk=self.run.pk).annotate(moment=DbNow()).values_list("moment", flat=True).get()
        return moment < until or begun_under(self.run, granted)

    def attempts_made(self, effect: CallTool) -> int:
        """Counted in the rows: neither a release, nor a drain, nor a takeover gives a call more attempts."""
        if not self._attempts:
            return 0
        return attempts_made(self.run, effect.index, effect.step, effect.tool)

    def holds_slot(self, target: str) -> bool:
        """Once: the next attempt needs another."""
        held, self._slot = self._slot, ""
        return held == target

    def wait(self, seconds: float, clock: Clock, slot: str = "") -> None:
        """Wait here, or queue the run again until then: what is longer than a minute, or outlives this process.

        The outcome of the attempt before is committed first, with the time until which the run waits: whoever takes it
        over neither takes its fate for unknown nor calls too early.
        """
        until = time.monotonic() + seconds
        if seconds > WORKER_WAITS_SECONDS:
            self._hand_back(seconds, slot)
        if self._outcome is not None:
            self._commit_outcome(not_before=DbNow(seconds))
        if self._waiter is not None:
            self._waiter(seconds, slot)
        point("run.waiting")
        while seconds > 0 and not draining.is_set():
            give_connection_back()
            clock.sleep(min(seconds, LOOK_SECONDS))
            seconds -= LOOK_SECONDS
            if seconds > 0 and not self._held().exists():
                raise LeaseLost(f"run {self.run.uuid}: cancelled or taken over while it waited")
        if draining.is_set():
            self._hand_back(max(0.0, until - time.monotonic()), slot)

    def pause(self, pause: Pause) -> Decision | Recorded | None:
        """Ask the desk: a rule's decision at once, or None after the pause is stored and the lease given back.

        Where nobody waits for the decision, the run goes on beside its request.
        """
        considered = desk().consider(self.run, pause)
        if pause.policy.mode == "record":
            return self._beside(pause, considered.decision if isinstance(considered, Decided) else None)
        if isinstance(considered, Decided):
            self._decided(pause, considered.decision)
            return considered.decision
        point("run.before_pause")
        self._index, self._phase, self._step = pause.step_index, pause.phase, pause.step
        try:
            with transaction.atomic():
                key = desk().open(self.run, pause)
                self._events.append(
                    AwaitingApproval(step=pause.step, kind=pause.kind, reason=pause.reason, tool=pause.tool, key=key)
                )
                # The outputs moved into the record: they are stored once.
                self._write(status=Status.AWAITING, outputs="", lease_owner="", lease_until=None)
        except CannotPause as error:
            self.note(Failed(step=pause.step, error=str(error)))
        point("run.paused")
        return None

    def _decided(self, pause: Pause, decision: Decision) -> None:
        """Keep a rule's decision with the run, so that whoever takes it over does not ask the rule again.

        It enters the gate once more with that decision, as after a pause.
        """
        self._index, self._phase, self._step = pause.step_index, pause.phase, pause.step
        with transaction.atomic():
            desk().decided(self.run, pause, decision)
            self._write(decision=codec.dump_decision(decision))

    def _beside(self, pause: Pause, decision: Decision | None) -> Recorded:
        """The request, or the proof of the rule that decided; the run takes no decision and goes on."""
        key = None
        with transaction.atomic():
            if decision is None:
                key = desk().open(self.run, pause)
            else:
                desk().decided(self.run, pause, decision)
            self._write()
        return Recorded(key=key)

    def interrupt(self, error: str) -> None:
        """Something unforeseen happened: stop here, name the step, leave the rest to an operator.

        The attempt stays open unless its call came back: an open one says that its effect is not known.
        """
        if self._step:
            error = f"interrupted at step {self._step}: {error}"
        event = Interrupted(step=self._step or None, error=error)
        self._events.append(event)
        with transaction.atomic():
            self._write(
                status=Status.INTERRUPTED,
                error=error,
                ended_at=DbNow(),
                lease_owner="",
                lease_until=None,
            )

    # Writing --------------------------------------------------------------------------------------------------

    def _hand_back(self, seconds: float | None = None, slot: str = "") -> None:
        """Give the run back: before its next step, or so many seconds before its next attempt.

        A slot that was taken for that attempt stays taken.
        """
        waiting: dict[str, Any] = {}
        if seconds is not None:
            waiting["not_before"] = DbNow(min(seconds, LONGEST_SECONDS))
            waiting["slot_target"] = slot
        with transaction.atomic():
            self._write(status=Status.QUEUED, queued_at=DbNow(), lease_owner="", lease_until=None, **waiting)
        when = "its next step" if seconds is None else f"its next attempt in {seconds:.0f} s"
        raise HandedBack(f"run {self.run.uuid}: handed back before {when}")

    def _commit_outcome(self, **fields: Any) -> None:
        point("run.before_event")
        with transaction.atomic():
            self._write(**fields)
        point("run.event_written")

    def _finish(self, event: Completed | Rejected | Failed | Expired) -> None:
        point("run.before_final")
        status, error = {
            Completed: (Status.COMPLETED, ""),
            Rejected: (Status.REJECTED, getattr(event, "reason", "")),
            Failed: (Status.FAILED, getattr(event, "error", "")),
            Expired: (Status.EXPIRED, getattr(event, "error", "")),
        }[type(event)]
        with transaction.atomic():
            self._write(status=status, error=error, ended_at=DbNow(), lease_owner="", lease_until=None)
            if isinstance(event, Failed):
                keyed.release(self.run)
        point("run.finished")

    def _held(self) -> QuerySet[Run]:
        """The run's row, while it is ours."""
        return Run.objects.filter(pk=self.run.pk, lease_token=self._token, status=Status.RUNNING)

    def _write(self, **fields: Any) -> None:
        """One fenced update of the run, the buffered events, the attempt that ended; in the caller's transaction."""
        changes: dict[str, Any] = {
            "outputs": codec.dump_outputs(self._outputs),
            "step_index": self._index,
            "phase": self._phase,
            "step": self._step,
            "last_event": F("last_event") + len(self._events),
            # A lease is never written earlier than the one stored: SQLite's clock is ours and can go back.
            "lease_until": Greatest(F("lease_until"), DbNow(setting("KAMPONG_LEASE_SECONDS"))),
        }
        changes.update(fields)
        asked_at = time.monotonic()
        if self._held().update(**changes) != 1:
            raise LeaseLost(f"run {self.run.uuid}: the lease is gone")
        self.renewed_at = asked_at
        if self._events:
            rows = [event_row(self.run, self._last_event + n, event) for n, event in enumerate(self._events, start=1)]
            RunEvent.objects.bulk_create(rows)
            transaction.on_commit(crossing.ring, robust=True)
            self._last_event += len(rows)
            self._events = []
        if self._open is not None and self._outcome is not None:
            Attempt.objects.filter(pk=self._open.pk).update(ended_at=now(), outcome=self._outcome)
            self._open, self._outcome = None, None
