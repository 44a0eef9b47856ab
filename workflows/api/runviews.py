"""Runs over HTTP: start, list, read, cancel, retry, give up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models import Q
from rest_framework.request import Request
from rest_framework.response import Response

from workflows import reading, registry, runs
from workflows.api import bodies, paging
from workflows.api.authentication import Caller, need_permission
from workflows.api.endpoint import Endpoint, answer
from workflows.api.idempotency import idempotency_key
from workflows.engine.state import new_state
from workflows.errors import Invalid
from workflows.models import WORKSPACE, Run, Status
from workflows.times import rfc3339

START = "workflows.start_run"
VIEW = "workflows.view_run"
OPERATE = "workflows.operate_run"

#: A run that waits for a worker reads `running`.
WIRE_STATUS = {Status.QUEUED: "running"}
STATUSES = tuple(sorted(status for status in Status.values if status not in (Status.QUEUED, Status.RESUMED)))


def wire_status(status: str) -> str:
    """The status as the wire knows it (design 5.3)."""
    return WIRE_STATUS.get(Status(status), status)


def started(given: runs.Started, caller: Caller | None) -> Response:
    """201 for a new run; 200 with the first one for a repeat, whose state only those see who may read runs.

    `caller` None: whoever signs the webhook.
    """
    run = given.run
    if given.repeated and run.pk is not None and caller is not None and caller.user.has_perm(VIEW):
        return answer(200, **reading.run_json(run))
    return answer(200 if given.repeated else 201, id=str(run.uuid), agent=run.agent_id, state=new_state())


class Runs(Endpoint):
    """`GET /runs` and `POST /runs`."""

    query = ("limit", "after", "agent", "status")
    fields: ClassVar[dict[str, bodies.Field]] = {
        "agent": bodies.Field(problem=bodies.is_text, required=True),
        "input": bodies.Field(problem=bodies.is_text, required=True),
        "vars": bodies.Field(problem=bodies.is_object),
    }

    def post(self, request: Request) -> Response:
        given = self.json_object(self.fields)
        key = idempotency_key(request, self.caller)
        need_permission(self.caller, START)
        spec_file = registry.registry().find(given["agent"])
        run = runs.start_run(
            spec_file,
            input=given["input"],
            overrides=given["vars"],
            actor=self.caller.actor(),
            idempotency_key=key,
        )
        return started(run, self.caller)

    def get(self, request: Request) -> Response:
        """The newest run of every chain, the oldest first. States come without trace and outputs: ask for the run."""
        limit, after = paging.limit_of(request), paging.after_of(request)
        wanted = _statuses(request.query_params.get("status"))
        need_permission(self.caller, VIEW)
        found = Run.objects.filter(wanted, workspace=WORKSPACE, id__gt=after).select_related("resumed_from")
        if (agent := request.query_params.get("agent")) is not None:
            found = found.filter(agent_id=agent)
        rows = list(found.order_by("id")[: limit + 1])
        shown = rows[:limit]
        more = str(shown[-1].pk) if len(rows) > limit else None
        return answer(runs=[_line(run) for run in shown], next=more)


def _statuses(given: str | None) -> Q:
    newest = Q(resumed_as__isnull=True)
    if given is None:
        return newest
    if given not in STATUSES:
        known = ", ".join(STATUSES)
        raise Invalid(f"status: must be one of {known}", [{"path": "status", "message": f"must be one of {known}"}])
    return newest & Q(status__in=[status for status in Status if wire_status(status) == given])


def _line(run: Run) -> dict[str, Any]:
    state: dict[str, Any] = {"status": wire_status(run.status)}
    if run.error:
        state["error"] = run.error
    if run.pruned_at is not None:
        state["prunedAt"] = rfc3339(run.pruned_at)
    line: dict[str, Any] = {"id": str(run.uuid), "agent": run.agent_id, "state": state}
    if run.step:
        line["step"] = run.step
    if run.resumed_from is not None:
        line["resumedFrom"] = str(run.resumed_from.uuid)
    line["createdAt"] = rfc3339(run.created_at)
    if run.ended_at is not None:
        line["endedAt"] = rfc3339(run.ended_at)
    return line


class OneRun(Endpoint):
    """`GET /runs/<id>`: an old id reads as the newest run of its chain; `?own=1` shows its own record."""

    query = ("own",)

    def get(self, request: Request, run_id: str) -> Response:
        own = paging.flag_of(request, "own")
        need_permission(self.caller, VIEW)
        return answer(**reading.run_json(runs.find_run(run_id), own=own))


class Act(Endpoint):
    """`POST /runs/<id>/cancel`, `/retry`, `/give-up` with `{reason}`; acts on the newest run of the chain."""

    act: ClassVar[Callable[..., Run]]
    reason_required: ClassVar[bool] = True

    def post(self, request: Request, run_id: str) -> Response:
        given = self.json_object({"reason": bodies.Field(problem=bodies.is_short_text, required=self.reason_required)})
        need_permission(self.caller, OPERATE)
        run = runs.newest(runs.find_run(run_id))
        done = type(self).act(run, actor=self.caller.actor(), reason=given["reason"] or "")
        return answer(**reading.run_json(done))


class Cancel(Act):
    act = staticmethod(runs.cancel_run)
    reason_required = False


class Retry(Act):
    act = staticmethod(runs.retry_run)


class GiveUp(Act):
    act = staticmethod(runs.give_up_run)
