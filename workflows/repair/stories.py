"""What is told of runs: their numbered events, and the specs that they execute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, F, Max, Min, Q

from workflows import codec, registry
from workflows.desk import desk
from workflows.engine.events import Cancelled, Completed, Event, Expired, Failed, Interrupted, Rejected
from workflows.engine.values import NOTHING
from workflows.errors import SpecBroken
from workflows.journal import event_row
from workflows.models import FINAL, Run, RunEvent, SpecVersion, Status
from workflows.repair.findings import By, Check, Finding, Scope, need
from workflows.repair.leases import lock_run
from workflows.repair.words import ACTIVE, name_of
from workflows.runs import pin
from workflows.specfiles import SpecFile

# Events --------------------------------------------------------------------------------------------------------


def _told(scope: Scope) -> Iterator[int]:
    for page in scope.pages(Run.objects, Q(status__in=ACTIVE), "events of runs"):
        counted = {
            run: (count, last)
            for run, count, last in RunEvent.objects.filter(run__in=page)
            .order_by()
            .values("run")
            .annotate(count=Count("pk"), last=Max("number"))
            .values_list("run", "count", "last")
        }
        ends = dict(
            RunEvent.objects.filter(run__in=page, number=F("run__last_event")).order_by().values_list("run", "type")
        )
        kept = Run.objects.filter(pk__in=page, pruned_at__isnull=True)
        for pk, status, last, after in kept.values_list("pk", "status", "last_event", "resumed_as"):
            whole = counted.get(pk, (0, 0)) == (last, last)
            if not whole or _lacks_its_end(status, after, ends.get(pk)):
                yield pk


def _lacks_its_end(status: str, resumed_as: int | None, end: str | None) -> bool:
    """A run whose approval was withdrawn tells nothing: whoever watches it goes on with the one in its place."""
    withdrawn = status == Status.CANCELLED and resumed_as is not None
    return status in FINAL and not withdrawn and end != status


def _judge_told(pk: int) -> Finding | None:
    run = Run.objects.filter(pk=pk, pruned_at__isnull=True).first()
    if run is None:
        return None
    told = run.events.aggregate(count=Count("pk"), last=Max("number"), first=Min("at"))
    count, last = told["count"], told["last"] or 0
    facts: dict[str, Any] = {"subject": name_of(run), "run": str(run.uuid), "since": run.ended_at or run.started_at}
    if last > run.last_event:
        return Finding(
            code="events_uncounted",
            what=f"it has events up to number {last} and hands out numbers after {run.last_event}",
            means="its next event would take a number that is taken: whoever works on it fails again and again",
            fix="counts on from the last event",
            mend=lambda by: need(
                Run.objects.filter(pk=pk, last_event=run.last_event, status=run.status).update(last_event=last)
            ),
            **facts,
        )
    end = run.events.filter(number=run.last_event).values_list("type", flat=True).first()
    if _lacks_its_end(run.status, run.resumed_as_id, end):
        return Finding(
            code="ending_missing",
            what=f"it is {run.status}, and its events do not say so",
            means="whoever reads or watches it sees it as going on, for ever",
            fix="writes the event of its end anew, as the run's row has it",
            mend=lambda by: _end_again(run, by),
            **facts,
        )
    if count < run.last_event:
        return Finding(
            code="events_missing",
            what=f"{run.last_event - count} of its {run.last_event} events are gone",
            means="its page and its stream leave out what they told; the run itself is not affected",
            move="nothing has to be done; events that were deleted come back only out of a backup",
            **facts,
        )
    return None


def _end_again(run: Run, by: By) -> None:
    """In the place of the one that is gone, or behind the others where nothing is."""
    told = run.events.filter(number=run.last_event).exists() or not run.last_event
    number = run.last_event + told
    need(Run.objects.filter(pk=run.pk, last_event=run.last_event, status=run.status).update(last_event=number))
    event_row(run, number, _ending_of(run)).save(force_insert=True)
    desk().note("repair", run, by.actor, by.because("its events did not tell its end"))


def _ending_of(run: Run) -> Event:
    step = run.step or None
    match run.status:
        case Status.COMPLETED:
            outputs = codec.load_outputs(run.outputs)
            return Completed(output={name: value for name, value in outputs.items() if value is not NOTHING})
        case Status.REJECTED:
            return Rejected(step=run.step, reason=run.error)
        case Status.FAILED:
            return Failed(step=step, error=run.error)
        case Status.EXPIRED:
            return Expired(step=step, error=run.error)
        case Status.CANCELLED:
            return Cancelled(error=run.error)
    return Interrupted(step=step, error=run.error)


# Specs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Unusable:
    """A spec that live runs execute and that cannot be executed, as it was read outside any transaction.

    `text` is what is stored; `file` says the same as what should be.
    """

    workspace: str
    spec_hash: str
    code: str
    what: str
    text: str | None = field(repr=False)
    file: SpecFile | None = field(repr=False)


def _executed(scope: Scope) -> Iterator[_Unusable]:
    """Those that live runs execute. Reading one may take long."""
    live = Run.objects.filter(status__in=ACTIVE).order_by()
    for workspace, spec_hash in sorted(live.values_list("workspace", "spec_hash").distinct()):
        text = _stored(workspace, spec_hash)
        fault = _fault(workspace, spec_hash)
        run = live.filter(workspace=workspace, spec_hash=spec_hash).order_by("pk").first()
        if fault is None or run is None:
            continue
        file = registry.registry().present(run.agent_id, run.source)
        same = file if isinstance(file, SpecFile) and file.hash == spec_hash else None
        code, what = fault
        yield _Unusable(workspace=workspace, spec_hash=spec_hash, code=code, what=what, text=text, file=same)


def _stored(workspace: str, spec_hash: str) -> str | None:
    return SpecVersion.objects.filter(workspace=workspace, hash=spec_hash).values_list("text", flat=True).first()


def _fault(workspace: str, spec_hash: str) -> tuple[str, str] | None:
    """The code and what is wrong, asked of the database and not of what this process remembers."""
    try:
        registry.pinned.__wrapped__(workspace, spec_hash)
    except SpecVersion.DoesNotExist:
        return "spec_missing", "its text is not in the database"
    except SpecBroken as broken:
        return "spec_unusable", broken.message
    return None


def _judge_spec(suspect: _Unusable) -> Finding | None:
    live = Run.objects.filter(status__in=ACTIVE, workspace=suspect.workspace, spec_hash=suspect.spec_hash)
    run = live.order_by("pk").first()
    if run is None or _stored(suspect.workspace, suspect.spec_hash) != suspect.text:
        return None
    facts: dict[str, Any] = {
        "code": suspect.code,
        "subject": f"spec {suspect.spec_hash[:12]} of {run.agent_id}, which {live.count()} live runs execute",
        "run": str(run.uuid),
        "since": run.created_at,
        "what": suspect.what,
        "means": "none of them can go on; a decision on one ends it as interrupted or failed",
    }
    file = suspect.file
    if file is None:
        return Finding(
            move="put the file back as it was when they started (the hash says which) and repair again; or cancel them",
            **facts,
        )
    return Finding(
        fix=f"keeps the text of {file.path} again: its hash is the same, so it says the same",
        mend=lambda by: _pin_again(file, run),
        **facts,
    )


def _pin_again(file: SpecFile, run: Run) -> None:
    kept = SpecVersion.objects.filter(workspace=run.workspace, hash=run.spec_hash)
    if not kept.update(text=file.text):
        pin(file, run.workspace)
    registry.pinned.cache_clear()


CHECKS = (
    Check(
        name="events",
        codes=("events_uncounted", "ending_missing", "events_missing"),
        suspects=_told,
        judge=_judge_told,
        lock=lock_run,
    ),
    Check(name="specs", codes=("spec_missing", "spec_unusable"), suspects=_executed, judge=_judge_spec),
)
