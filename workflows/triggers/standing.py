"""How each trigger stands in this process: when it is due next, what it did last, and what keeps it from starting runs.

What a row says is everybody's; what the files say is this process's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, QuerySet, Subquery

from statestore.clock import now
from workflows.models import WORKSPACE, Run, SpecVersion, TriggerState
from workflows.registry import BrokenFile, SpecFile, registry
from workflows.spec.trigger_model import ScheduleTrigger
from workflows.triggers import locks, state, words
from workflows.triggers.lateness import is_overdue
from workflows.triggers.locks import Held, Holding

#: What a run read, made and was decided on: up to megabytes, of which nobody tells here.
_DATA = ("input", "trigger", "outputs", "overrides", "decision", "held_keys")

NOT_YET = "No scheduler has looked at it yet. Start one: manage.py serve, or manage.py scheduler."


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One schedule or poll. `row` is None before a scheduler looked; `when` is empty where this process has no file.

    `problem` says why it starts nothing, as far as this process knows. `late`: it is overdue by the rule of the doctor,
    so that probably no scheduler runs that has its file.
    """

    agent_id: str
    kind: str
    when: str
    zone: str
    row: TriggerState | None
    held: Held | None
    problem: str
    late: bool = False

    @property
    def next_at(self) -> datetime | None:
        """When it is due, or tried again; None where that is not known, or nothing is done."""
        if self.row is None or self.problem:
            return None
        return max(self.row.due_at, self.row.retry_at) if self.row.retry_at is not None else self.row.due_at

    @property
    def put_off_until(self) -> datetime | None:
        """When it is tried again after it failed; None where nothing but its time keeps it."""
        retry_at = self.row.retry_at if self.row is not None else None
        return retry_at if retry_at is not None and retry_at > now() else None

    @property
    def overdue(self) -> bool:
        """Whether its time has come and nobody did anything about it yet."""
        return self.next_at is not None and self.next_at <= now()

    @property
    def next_local(self) -> str:
        """The next time in the zone of the schedule; empty where that is UTC anyway."""
        return words.in_zone(self.next_at, self.zone) if self.next_at is not None and self.zone != "UTC" else ""

    @property
    def polling_until(self) -> datetime | None:
        """Until when somebody has the poll, who is at it now."""
        row = self.row
        if row is None or self.kind != "poll" or row.lease_until is None or row.lease_until <= now():
            return None
        return row.lease_until

    @property
    def holder(self) -> str:
        """The first run of the chain that keeps the next one from being started; empty where none does."""
        held = self.held
        if held is None or held.chain is None or held.holding is Holding.FREE:
            return ""
        return held.chain.root

    @property
    def locked_until(self) -> datetime | None:
        """The end of the lock's lifetime, unless it is renewed."""
        return self.held.lock.expires_at if self.held is not None and self.held.lock is not None else None

    @property
    def worker_lost(self) -> bool:
        """Whether the holder's worker is not heard of: the lock ends by itself."""
        return self.held is not None and self.held.holding is Holding.LOST


@dataclass(frozen=True, kw_only=True)
class Called:
    """One served webhook, and the agent's newest run."""

    agent_id: str
    when: str
    last_run: Run | None


def rows_with_last_run(workspace: str = WORKSPACE) -> QuerySet[TriggerState]:
    """The rows of schedules and polls, each with what is told of the run that it started last."""
    deferred = [f"last_run__{name}" for name in _DATA]
    return TriggerState.objects.filter(workspace=workspace).select_related("last_run").defer(*deferred)


def standings(rows: Iterable[TriggerState], workspace: str = WORKSPACE) -> list[Standing]:
    """How these rows stand. The queries are as many for one row as for a hundred."""
    found = list(rows)
    held = {one.row.agent_id: one for one in locks.look(workspace, [row.agent_id for row in found])}
    served, broken = _files()
    return [_standing(row, served.get(row.agent_id), broken.get(row.agent_id), held) for row in found]


def without_row(workspace: str = WORKSPACE) -> list[Standing]:
    """The served schedules and polls that no scheduler has looked at yet."""
    timed = {file.agent_id: file for file in registry().files() if state.timed(file) is not None}
    if not timed:
        return []
    known = TriggerState.objects.filter(workspace=workspace, agent_id__in=timed).values_list("agent_id", flat=True)
    for agent_id in known:
        del timed[agent_id]
    return [
        Standing(
            agent_id=agent_id,
            kind=words.kind(file.spec),
            when=words.when(file.spec),
            zone=_zone(file),
            row=None,
            held=None,
            problem=NOT_YET,
        )
        for agent_id, file in sorted(timed.items())
    ]


def webhooks(workspace: str = WORKSPACE) -> list[Called]:
    """The served webhooks, by agent."""
    files = {file.agent_id: file for file in registry().files() if words.kind(file.spec) == "webhook"}
    if not files:
        return []
    newest = Run.objects.filter(workspace=workspace, agent_id=OuterRef("agent_id")).order_by("-pk").values("pk")[:1]
    started = SpecVersion.objects.filter(workspace=workspace, agent_id__in=files).values("agent_id").distinct()
    last = dict(started.annotate(last=Subquery(newest)).values_list("agent_id", "last"))
    runs = Run.objects.defer(*_DATA).in_bulk([pk for pk in last.values() if pk is not None])
    return [
        Called(agent_id=agent_id, when=words.when(file.spec), last_run=runs.get(last.get(agent_id) or 0))
        for agent_id, file in sorted(files.items())
    ]


def _files() -> tuple[Mapping[str, SpecFile], Mapping[str, BrokenFile]]:
    served = {file.agent_id: file for file in registry().files()}
    broken = {file.agent_id: file for file in reversed(registry().broken()) if file.agent_id is not None}
    return served, broken


def _standing(
    row: TriggerState, file: SpecFile | None, refused: BrokenFile | None, held: Mapping[str, Held]
) -> Standing:
    timed = file if file is not None and words.kind(file.spec) == row.kind else None
    return Standing(
        agent_id=row.agent_id,
        kind=row.kind,
        when=words.when(timed.spec) if timed is not None else "",
        zone=_zone(timed) if timed is not None else "UTC",
        row=row,
        held=held.get(row.agent_id),
        problem=_problem(row, file, refused),
        late=is_overdue(row, state.timed(timed) if timed is not None else None, held.get(row.agent_id), now()),
    )


def _problem(row: TriggerState, file: SpecFile | None, refused: BrokenFile | None) -> str:
    if file is None and refused is not None:
        return f"Its file {refused.path.name} is broken, so nothing is started. Mend it; a missed time is made up for."
    if file is None:
        return "No file that this process serves has it, so this process starts nothing by it."
    kind = words.kind(file.spec)
    if kind != row.kind:
        return f"Its file has another trigger now: {words.when(file.spec)}."
    trigger = state.timed(file)
    if trigger is not None and row.definition != state.definition_of(trigger):
        return "Its file says another time than the scheduler knows: it changed a moment ago, or differs there."
    return ""


def _zone(file: SpecFile) -> str:
    trigger = file.spec.agent.trigger
    return trigger.timezone if isinstance(trigger, ScheduleTrigger) else "UTC"
