"""The doors through which runs are started, cancelled, retried and given up (design 2, 3.1)."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q

from statestore import faults
from statestore.clock import DbNow, now
from workflows import codec, idempotency, keyed, registry
from workflows.actors import Actor
from workflows.adapters.models import client_for
from workflows.desk import desk
from workflows.endings import end_from_outside
from workflows.engine import jsontext
from workflows.engine.deciding import kept_names
from workflows.engine.effects import Decision
from workflows.engine.events import Cancelled, Failed
from workflows.engine.situation import Trigger
from workflows.engine.values import NOTHING, Json, MaybeJson, Outputs
from workflows.errors import Invalid, NotAllowed, NotPossible, RunNotFound, SpecChanged, TooLarge
from workflows.headers import passed_on
from workflows.idempotency import Delivery
from workflows.metrics.runs import started
from workflows.models import WORKSPACE, Run, SpecVersion, Status
from workflows.registry import SpecFile
from workflows.spec.model import Spec
from workflows.successors import go_on, leave
from workflows.tasks import enqueue
from workflows.times import rfc3339

INPUT_LIMIT = 1024 * 1024

#: What an operator may do with a run in which status. Surfaces draw by it, the doors below refuse by it.
ALLOWED_IN = {
    "cancel": frozenset({Status.QUEUED, Status.RUNNING, Status.AWAITING}),
    "retry": frozenset({Status.INTERRUPTED, Status.FAILED}),
    "give_up": frozenset({Status.INTERRUPTED}),
}


@dataclass(frozen=True, kw_only=True)
class Started:
    """`repeated`: the key or the delivery was seen before, and `run` is the one that it started then.

    A run that is no longer kept is an unsaved row with its id.
    """

    run: Run
    repeated: bool = False


def start_run(
    spec_file: SpecFile,
    *,
    input: str,
    actor: Actor,
    headers: Mapping[str, str] | None = None,
    body: MaybeJson = NOTHING,
    overrides: Mapping[str, Json] | None = None,
    workspace: str = WORKSPACE,
    idempotency_key: str | None = None,
    delivery: Delivery | None = None,
) -> Started:
    """Register a run and queue it, in one transaction with what says that it was started.

    Raises Invalid (input, vars, or an idempotency key that was used for another request), TooLarge, ModelUnavailable,
    NotAllowed (four eyes, and nobody to hold them against); then nothing is written.
    """
    check_input(input)
    given = dict(overrides or {})
    _check_overrides(spec_file, given)
    check_start(spec_file, actor)
    trigger = Trigger(headers=passed_on((headers or {}).items()), body=body)
    run = _fresh(spec_file, input, trigger, actor, workspace, given)
    try:
        with transaction.atomic():
            _claim(run, idempotency_key, delivery)
            faults.point("start.key_taken")
            pin(spec_file, workspace)
            run.save(force_insert=True)
            enqueue(run)
            started(run)
    except _StartedBefore as seen:
        return Started(run=_kept_or_not(seen.run, run), repeated=True)
    faults.point("start.committed")
    return Started(run=run)


def start_runs(
    spec_file: SpecFile,
    items: Iterable[Json],
    *,
    actor: Actor,
    take: Callable[[Run], bool],
    workspace: str = WORKSPACE,
) -> list[Run]:
    """Register and queue a run for each item, in the caller's transaction; the item is its input, and the body.

    `take` claims for a run what it is started for; where that is taken already, the run is not started. Raises Invalid
    and TooLarge for an item; ask `check_start` and `check_input` before the transaction.
    """
    runs = []
    for item in items:
        text = jsontext.dumps(item)
        check_input(text)
        run = _fresh(spec_file, text, Trigger(body=item), actor, workspace, {})
        if take(run):
            runs.append(run)
    if runs:
        pin(spec_file, workspace)
        Run.objects.bulk_create(runs)
        for run in runs:
            enqueue(run)
            started(run)
    return runs


def check_start(spec_file: SpecFile, actor: Actor) -> None:
    """Raise NotAllowed or ModelUnavailable where no run of this spec can be started by this actor here."""
    _check_starter(spec_file.spec, actor)
    client_for(spec_file.spec, os.environ)


def _fresh(
    spec_file: SpecFile, input: str, trigger: Trigger, actor: Actor, workspace: str, overrides: Mapping[str, Json]
) -> Run:
    """An unsaved run."""
    return Run(
        workspace=workspace,
        agent_id=spec_file.agent_id,
        spec_hash=spec_file.hash,
        source=str(spec_file.path),
        input=input,
        trigger=jsontext.dumps(codec.trigger_json(trigger)),
        overrides=jsontext.dumps(overrides) if overrides else "",
        started_by=actor.label,
        started_by_user_id=actor.user_id,
        surface=actor.surface,
        created_at=now(),
        queued_at=DbNow(),
    )


def _kept_or_not(run_uuid: str, like: Run) -> Run:
    """The run that was started before, by the same agent as this one."""
    kept = Run.objects.filter(uuid=run_uuid, workspace=like.workspace).first()
    return kept or Run(uuid=run_uuid, workspace=like.workspace, agent_id=like.agent_id)


class _StartedBefore(Exception):
    """Takes back what the transaction claimed: `run` was started for the same."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.run = run


def _claim(run: Run, idempotency_key: str | None, delivery: Delivery | None) -> None:
    """Make the run the one that its key and its delivery start; _StartedBefore when there is one."""
    if delivery is not None and (earlier := idempotency.claim_delivery(run, delivery)) is not None:
        raise _StartedBefore(earlier)
    if idempotency_key is not None and (earlier := idempotency.claim(run, idempotency_key)) is not None:
        raise _StartedBefore(earlier)


def pin(spec_file: SpecFile, workspace: str) -> None:
    """Keep the text that runs with this hash execute, whatever happens to the file."""
    version = SpecVersion(
        workspace=workspace,
        agent_id=spec_file.agent_id,
        hash=spec_file.hash,
        text=spec_file.text,
        source=str(spec_file.path),
        first_seen=now(),
    )
    SpecVersion.objects.bulk_create([version], ignore_conflicts=True)


def find_run(run_uuid: str, workspace: str = WORKSPACE) -> Run:
    """The run with this id. RunNotFound for anything else, ids that are none included."""
    try:
        return Run.objects.get(uuid=run_uuid, workspace=workspace)
    except (Run.DoesNotExist, ValidationError, ValueError) as error:
        raise RunNotFound(f"there is no run {run_uuid!r}") from error


def newest(run: Run) -> Run:
    """The end of this run's chain as it is in the database now, whatever the object at hand remembers."""
    present = _read_again(run.pk, run)
    while present.resumed_as_id is not None:
        present = _read_again(present.resumed_as_id, run)
    return present


def _read_again(pk: int, of: Run) -> Run:
    """The row as it is now. RunNotFound when the chain was deleted meanwhile: it is kept no longer."""
    present = Run.objects.filter(pk=pk).first()
    if present is None:
        raise RunNotFound(f"the run {str(of.uuid)!r} is not kept any more")
    return present


def possible_acts(run: Run) -> frozenset[str]:
    """The acts that the status of this run, as it is at hand, allows; none once it was pruned."""
    if run.pruned_at is not None:
        return frozenset()
    return frozenset(act for act, statuses in ALLOWED_IN.items() if run.status in statuses)


def cancel_run(run: Run, *, actor: Actor, reason: str = "") -> Run:
    """End a queued, running or waiting run as `cancelled`.

    Raises Invalid (a reason that cannot be stored) and NotPossible (it was decided or ended meanwhile).
    A waiting run's record is claimed with the same delete as a decision's. A running one meets the fence at its next
    write; no further call starts.
    """
    check_text(reason, "reason")
    error = f"cancelled by {actor.label}" + (f": {reason}" if reason else "")
    with transaction.atomic():
        run.refresh_from_db()
        if run.status == Status.AWAITING:
            record = desk().on_cancel(run, actor, reason)
            if record is None:
                raise NotPossible("its approval was decided or expired meanwhile; look again", status=run.status)
            _end(run, Cancelled(error=error), outputs=codec.outputs_from(record))
        elif "cancel" in possible_acts(run):
            _end(run, Cancelled(error=error))
            desk().note("cancel", run, actor, reason)
        else:
            raise NotPossible(f"the run is {run.status} and cannot be cancelled", status=run.status)
    run.refresh_from_db()
    return run


def retry_run(run: Run, *, actor: Actor, reason: str) -> Run:
    """A successor of an interrupted or failed run at the same step, with the same outputs and the same decision.

    The operator takes the responsibility for repeating the effect, so a reason is needed. Raises Invalid,
    NotPossible, SpecChanged (the file's hash is compared again; the engine compares the action's digest).
    """
    _need_reason(reason)
    _reread_kept(run)
    if "retry" not in possible_acts(run):
        raise NotPossible(
            f"the run is {run.status}; only an interrupted or failed run can be retried", status=run.status
        )
    present = registry.registry().present_hash(run.agent_id, run.source)
    if present != run.spec_hash:
        raise SpecChanged(recorded=run.spec_hash, present=present)
    with transaction.atomic():
        entered, decision = _entered_again(run)
        outputs = _before_step(entered, decision)
        left = {step: value for step, value in codec.load_outputs(run.outputs).items() if step not in outputs}
        leave(run, Status(run.status), left=left)
        successor = go_on(entered, outputs=outputs, decision=decision)
        desk().note("retry", run, actor, reason, successor)
    return successor


def give_up_run(run: Run, *, actor: Actor, reason: str) -> Run:
    """End an interrupted run as `failed`. Raises Invalid, NotPossible."""
    _need_reason(reason)
    error = f"given up by {actor.label}: {reason}"
    with transaction.atomic():
        _reread_kept(run)
        if "give_up" not in possible_acts(run):
            raise NotPossible(f"the run is {run.status}; only an interrupted run can be given up", status=run.status)
        _end(run, Failed(step=run.step or None, error=error))
        desk().note("give_up", run, actor, reason)
    run.refresh_from_db()
    return run


def _end(run: Run, event: Cancelled | Failed, outputs: Outputs | None = None) -> None:
    """From the status as read; NotPossible when it changed meanwhile."""
    as_read = Q(status=run.status, pruned_at__isnull=True)
    if not end_from_outside(run, where=as_read, event=event, outputs=outputs):
        raise NotPossible("the run went on meanwhile; look at it again", status=run.status)


def _reread_kept(run: Run) -> None:
    """The row as it is now. RunNotFound, or NotPossible where only the row is kept."""
    try:
        run.refresh_from_db()
    except Run.DoesNotExist as error:
        raise RunNotFound(f"the run {str(run.uuid)!r} is not kept any more") from error
    if run.pruned_at is not None:
        removed = f"what it read and made was removed at {rfc3339(run.pruned_at)}"
        raise NotPossible(f"the run is {run.status}, and {removed}; start a new one", status=run.status)


def _entered_again(run: Run) -> tuple[Run, Decision | None]:
    """Where a retry enters: the step at which the run stands, with its decision.

    A key that was given back when it failed is taken again; if another chain has it by now, the `once` step that took
    it is entered, which says so. Nothing is done twice by that: the chain called nobody but by GET.
    """
    lost = keyed.take_again(run)
    if not lost:
        return run, codec.load_decision(run.decision)
    steps = registry.pinned(run.workspace, run.spec_hash).agent.workflow
    index = next((index for index, step in enumerate(steps) if step.step in lost), None)
    if index is None:
        raise NotPossible("another run has its key by now, and its spec has no step any more that asks for it")
    entered = copy.copy(run)
    entered.step_index, entered.step, entered.phase = index, steps[index].step, "before"
    return entered, None


def _before_step(run: Run, decision: Decision | None) -> Outputs:
    """Outputs of the steps ahead of the one that a retry enters; a step that failed after completing runs again.

    What gates called is kept with them, and that of this step's gate with the decision that it was called for: it is
    done. A check of a gate that came to no decision is called again, since what it looked at may be another now.
    """
    outputs = codec.load_outputs(run.outputs)
    if run.phase == "after":
        return outputs
    spec = registry.pinned(run.workspace, run.spec_hash)
    ahead = {step.step for step in spec.agent.workflow[: run.step_index]}
    if spec.is_1_2:
        decided = decision is not None and decision.step_index == run.step_index
        gates = [*ahead, run.step] if decided else ahead
        ahead = ahead.union(*map(kept_names, gates))
    return {step: value for step, value in outputs.items() if step in ahead}


def _need_reason(reason: str) -> None:
    if not reason.strip():
        raise Invalid("a reason is needed", [{"path": "reason", "message": "say why, in a few words"}])
    check_text(reason, "reason")


def check_text(text: str, path: str) -> None:
    """Refuse what no database and no JSON can hold: NUL and lone surrogates."""
    try:
        jsontext.check(text)
    except jsontext.NotJson as error:
        raise Invalid(f"{path}: {error.reason}", [{"path": path, "message": error.reason}]) from error


def check_input(text: str) -> None:
    """Refuse an input that cannot be stored, or is too large."""
    check_text(text, "input")
    size = len(text.encode())
    if size > INPUT_LIMIT:
        raise TooLarge(f"the input has {size} bytes; the limit is {INPUT_LIMIT}", limit=INPUT_LIMIT)


def _check_starter(spec: Spec, actor: Actor) -> None:
    """Four eyes need to know whose the first two are: a person at a terminal is a user. Webhooks have no starter."""
    if (
        actor.surface == "cli"
        and actor.user_id is None
        and any(one.approvers.four_eyes for one in spec.agent.policies())
    ):
        rule = "four eyes: whoever starts this run must be known, to be kept from approving it; set KAMPONG_CLI_USER"
        raise NotAllowed(rule, rule=rule)


def _check_overrides(spec_file: SpecFile, overrides: Mapping[str, Json]) -> None:
    declared = spec_file.spec.vars
    unknown = [name for name in overrides if name not in declared]
    if unknown:
        known = ", ".join(declared) or "none"
        raise Invalid(
            f"the spec declares no var {', '.join(unknown)}; declared: {known}",
            [{"path": f"vars.{name}", "message": f"not declared; declared: {known}"} for name in unknown],
        )
    try:
        jsontext.check(dict(overrides))
    except jsontext.NotJson as error:
        raise Invalid(f"vars: {error.reason}", [{"path": f"vars.{error.path}", "message": error.reason}]) from error
