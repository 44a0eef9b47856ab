"""The journal of a worker, which also says for the log at which step it is, and measures what the run does."""

from __future__ import annotations

import time

from workflows.bound import rebind
from workflows.engine.effects import AskModel, CallTool, ModelFailed, ToolFailed
from workflows.engine.events import Completed, Event, Expired, Failed, Rejected, StepCompleted, StepStarted
from workflows.journal import RunJournal
from workflows.metrics.runs import CALLS, STEPS, ended
from workflows.models import Status

_ENDS = {
    Completed: Status.COMPLETED,
    Rejected: Status.REJECTED,
    Failed: Status.FAILED,
    Expired: Status.EXPIRED,
}


class MeasuredJournal(RunJournal):
    """Every write is that of `RunJournal`; what is counted is counted after it."""

    _entered_at = _called_at = 0.0
    _kind = ""

    def note(self, event: Event) -> None:
        if isinstance(event, StepStarted):
            rebind(step=event.step)
            self._entered_at, self._kind = time.monotonic(), ""
        super().note(event)
        status = _ENDS.get(type(event))
        left = status is not None or (isinstance(event, StepCompleted) and not event.within)
        if left and self._kind:
            STEPS.observe(time.monotonic() - self._entered_at, self._kind)
            self._kind = ""
        if status is not None:
            ended(self.run, status)

    def opening(self, effect: AskModel | CallTool, name: str) -> None:
        super().opening(effect, name)
        self._kind = "model" if isinstance(effect, AskModel) else "tool"
        self._called_at = time.monotonic()

    def closing(self, outcome: object) -> None:
        took = time.monotonic() - self._called_at
        CALLS.observe(took, self._kind, "failed" if isinstance(outcome, ModelFailed | ToolFailed) else "ok")
        super().closing(outcome)

    def interrupt(self, error: str) -> None:
        super().interrupt(error)
        ended(self.run, Status.INTERRUPTED)
