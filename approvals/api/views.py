"""What waits, what the decider needs to see, and the decision, over HTTP (design 3.3, 5.2)."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from approvals import delegating, policy, queue, recall, services
from approvals.api import filters
from approvals.errors import ApprovalNotFound
from approvals.services import Outcome
from workflows import reading, runs
from workflows.api import bodies, paging
from workflows.api.endpoint import Endpoint, answer
from workflows.errors import RunNotFound

WAIT_SECONDS = 5.0
MOST_WAIT_SECONDS = 60.0


class Waiting(Endpoint):
    """`GET /approvals`."""

    query = ("limit", "after", *filters.NAMES)

    def get(self, request: Request) -> Response:
        limit, after = paging.limit_of(request), paging.after_of(request)
        asked = filters.asked(request, self.caller.user)
        _need_view(self.caller.actor())
        page = queue.waiting(by=filters.found(asked), after=str(after) if after else None, limit=limit)
        return answer(approvals=page.items, next=page.next)


def _need_view(actor: Any) -> None:
    if not policy.may_view(actor):
        policy.need(policy.Verdict(allowed=False, rule=f"the permission {policy.VIEW} is needed"))


def as_issued(key: str) -> str:
    """The key as it was handed out, whichever of its spellings came; anything else stays what it is."""
    try:
        return str(uuid.UUID(key))
    except ValueError:
        return key


class OneApproval(Endpoint):
    """`GET /approvals/<key>`."""

    def get(self, request: Request, key: str) -> Response:
        return answer(**queue.detail(as_issued(key), self.caller.actor()))


class _Deciding(Endpoint):
    query = ("wait",)
    fields: ClassVar[dict[str, bodies.Field]] = {
        "approved": bodies.Field(problem=bodies.is_boolean, required=True),
        "reason": bodies.Field(problem=bodies.is_short_text),
        "answers": bodies.Field(problem=bodies.is_anything),
        "edits": bodies.Field(problem=bodies.is_anything),
        "digest": bodies.Field(problem=bodies.is_short_text),
        "breakGlass": bodies.Field(problem=bodies.is_boolean),
    }

    def asked(self, request: Request) -> tuple[dict[str, Any], float]:
        """The decision as the services take it, and how long to wait. Then the permission, before any look-up."""
        wait = paging.seconds_of(request, "wait", default=WAIT_SECONDS, most=MOST_WAIT_SECONDS)
        given = self.json_object(self.fields) | {"actor": self.caller.actor()}
        given["break_glass"] = bool(given.pop("breakGlass"))
        policy.need(policy.may_decide_at_all(given["actor"]))
        return given, wait


class Decide(_Deciding):
    """`POST /approvals/<key>/approve`."""

    def post(self, request: Request, key: str) -> Response:
        asked, wait = self.asked(request)
        return decided(services.decide(as_issued(key), **asked), wait)


class DecideRun(_Deciding):
    """`POST /runs/<id>/approve`, with the id of a run or the key of what waits."""

    def post(self, request: Request, run_id: str) -> Response:
        asked, wait = self.asked(request)
        try:
            run = runs.find_run(run_id)
        except RunNotFound as unknown:
            return decided(_by_key(run_id, asked, unknown), wait)
        return decided(services.decide_run(run, **asked), wait)


class Delegate(Endpoint):
    """`POST /approvals/<key>/delegate`."""

    fields: ClassVar[dict[str, bodies.Field]] = {
        "to": bodies.Field(problem=bodies.is_short_text, required=True),
        "reason": bodies.Field(problem=bodies.is_short_text),
    }

    def post(self, request: Request, key: str) -> Response:
        asked = self.json_object(self.fields)
        handed = delegating.delegate(as_issued(key), actor=self.caller.actor(), **asked)
        return answer(**reading.run_json(handed.run))


class Withdraw(Endpoint):
    """`POST /approvals/<key>/withdraw`: the run waits again, for a request under a new key."""

    fields: ClassVar[dict[str, bodies.Field]] = {"reason": bodies.Field(problem=bodies.is_short_text, required=True)}

    def post(self, request: Request, key: str) -> Response:
        asked = self.json_object(self.fields)
        reopened = recall.withdraw(as_issued(key), actor=self.caller.actor(), **asked)
        return answer(**reading.run_json(reopened.run))


def _by_key(key: str, asked: dict[str, Any], unknown: RunNotFound) -> Outcome:
    """What is neither a run nor a key that anybody knows is an unknown run."""
    try:
        return services.decide(as_issued(key), **asked)
    except ApprovalNotFound as error:
        if "decision" in error.extra:
            raise
        raise unknown from error


def decided(outcome: Outcome, wait: float) -> Response:
    """The fresh run, when it has reached its next pause or end, or after `wait` seconds."""
    if outcome.votes is not None:
        waiting = reading.run_json(outcome.run)
        # Beside the state of a run that waits for nobody (`mode: record`).
        pending = waiting["state"].get("pendingApproval", waiting)
        pending["votes"] = outcome.votes
        return answer(**waiting)
    reading.wait_for(outcome.run, wait)
    return answer(**reading.run_json(outcome.run))
