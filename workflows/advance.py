"""Take a queued run and drive it to its next pause or end. Safe to call twice: the Run row decides."""

from __future__ import annotations

import logging
import os
import traceback
from dataclasses import replace

from django.conf import settings
from django.db import DatabaseError
from django.db.models.functions import Coalesce

from statestore.clock import DbNow
from statestore.conf import value as setting
from statestore.faults import point
from workflows import registry
from workflows.adapters import evaluator
from workflows.adapters.environment import Environment
from workflows.bound import bound
from workflows.codec import load_decision, situation_of
from workflows.driver import drive
from workflows.engine.events import Expired, Failed
from workflows.engine.gates import EXPIRED
from workflows.engine.redact import redact
from workflows.errors import Refusal
from workflows.heartbeat import holding, owner
from workflows.journal import HandedBack, LeaseLost, Listener, RunJournal
from workflows.metrics.journal import MeasuredJournal
from workflows.metrics.runs import CLAIMS_LOST
from workflows.models import Run, Status
from workflows.pacing import DatabasePacer
from workflows.recording import LIVE, Recording
from workflows.spec.model import Spec
from workflows.spec.patterns import ENV_PLACEHOLDER
from workflows.waits import DUE, Waiter
from workflows.world import World

logger = logging.getLogger("kampong.driver")


def claim(workspace: str, run_uuid: str) -> Run | None:
    """One filtered update: the run is ours, with a fresh fence, or it was not queued and due.

    The fence as it was read says whose update it was: the threads of a process have one name, and each could be held
    up here until its lease is over and another thread has the run.
    """
    queued = Run.objects.filter(DUE, workspace=workspace, uuid=run_uuid, status=Status.QUEUED)
    found = queued.values_list("pk", "lease_token").first()
    if found is None:
        return None
    pk, token = found
    taken = queued.filter(lease_token=token).update(
        status=Status.RUNNING,
        lease_owner=owner(),
        lease_until=DbNow(setting("KAMPONG_LEASE_SECONDS")),
        lease_token=token + 1,
        started_at=Coalesce("started_at", DbNow()),
    )
    if taken != 1:
        CLAIMS_LOST.add("run")
        return None
    run = Run.objects.filter(pk=pk, lease_token=token + 1, status=Status.RUNNING).first()
    point("run.lease_taken")
    return run


def world_for(spec: Spec, model_timeout_ms: int | None = None, *, recording: Recording = LIVE) -> World:
    """The adapters of this process for one spec.

    Raises ModelUnavailable (engine semantics 2.1) or FixturesUnusable. `model_timeout_ms` comes before the spec's own
    limit of a model call. Nothing waits for a tool that is replayed.
    """
    recording.check()
    return World(
        evaluator=evaluator.shared(),
        environment=Environment(os.environ, key=settings.SECRET_KEY),
        model=recording.model_for(spec, os.environ, model_timeout_ms),
        tools=recording.tools_for(spec, os.environ),
        provider=spec.agent.model.provider if spec.agent.model else "model",
        waits=recording.tools != "replay",
    )


def advance(workspace: str, run_uuid: str, tell: Listener | None = None, waiter: Waiter | None = None) -> None:
    """Claim the run and drive it. Returns when it paused, ended, was no longer ours, or the process is draining."""
    run = claim(workspace, run_uuid)
    if run is None:
        return
    journal = MeasuredJournal(run, tell, waiter)
    secrets: list[str] = []
    with bound(run=run.uuid, agent=run.agent_id, workspace=run.workspace, step=run.step), holding(journal):
        try:
            _drive(run, journal, secrets)
        except LeaseLost as lost:
            _lost(lost)
        except HandedBack as back:
            logger.info("%s", back)
        except DatabaseError:
            # The lease runs out and recovery decides: requeued without an open attempt, interrupted with one.
            logger.exception("run %s: the database failed; recovery will take it up", run.uuid)
            raise
        except Exception as error:  # noqa: BLE001  (whatever it was, the run must not be left without a word)
            # It may quote what it broke on.
            what = redact(traceback.format_exc(), secrets)
            logger.error("run %s: unexpected error in the worker\n%s", run.uuid, what)
            _interrupt(journal, error)


def _drive(run: Run, journal: RunJournal, secrets: list[str]) -> None:
    """`secrets` are filled with the values that the spec refers to as soon as it is known."""
    try:
        spec = registry.pinned(run.workspace, run.spec_hash)
        secrets += referred_to(spec)
        world = replace(world_for(spec), pacer=DatabasePacer(run.workspace))
    except Refusal as refusal:
        journal.note(_refused(run, refusal))
        return
    drive(spec, situation_of(run), world, journal)


def _refused(run: Run, refusal: Refusal) -> Failed | Expired:
    """The end of a run that cannot be driven here. One that nobody decided in time is expired, whatever comes then."""
    decision = load_decision(run.decision)
    if decision is not None and decision.on_expire is not None:
        return Expired(step=run.step, error=f"{EXPIRED}; {refusal.message}")
    return Failed(error=refusal.message)


def referred_to(spec: Spec) -> list[str]:
    names = set(ENV_PLACEHOLDER.findall(spec.model_dump_json()))
    return [content for name in names if (content := os.environ.get(name))]


def _interrupt(journal: RunJournal, error: Exception) -> None:
    """The engine or an adapter broke: nothing is repeated by itself. The text names the kind of error only."""
    try:
        journal.interrupt(f"unexpected error in the worker: {type(error).__name__}; see the worker's log")
    except LeaseLost as lost:
        _lost(lost)


def _lost(lost: LeaseLost) -> None:
    CLAIMS_LOST.add("lease")
    logger.warning("%s; nothing more is written or called", lost)
