"""What waits for a person, and what became of it: reading only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Func, Q
from django.db.models.lookups import GreaterThan

from approvals import audit, ballots, differing, policy, records
from approvals.errors import ApprovalNotFound
from approvals.models import ApprovalRequest, RequestStatus
from approvals.narrowing import Narrowing, narrowed
from approvals.narrowing import is_key as is_key
from statestore.clock import DbNow
from workflows import codec
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.errors import Invalid
from workflows.models import WORKSPACE
from workflows.times import rfc3339

MOST = 200


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of items, oldest first, and the cursor of the next one (None at the end)."""

    items: list[dict[str, Any]]
    next: str | None


class _Aside(Func):
    """The column, by which no index is chosen: nearly all that is open has not expired, and SQLite thinks few have."""

    template = "%(expressions)s"
    arity = 1

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="+%(expressions)s", **context)


def open_requests(workspace: str = WORKSPACE) -> Any:
    """Open requests that can still be decided, oldest first."""
    waiting = ApprovalRequest.objects.filter(workspace=workspace, status=RequestStatus.OPEN)
    return waiting.filter(GreaterThan(_Aside("expires_at"), DbNow())).order_by("id")


def waiting(
    workspace: str = WORKSPACE,
    *,
    by: Narrowing | None = None,
    after: str | None = None,
    limit: int = 50,
    blocking: bool = False,
) -> Page:
    """What waits: never outputs, input or trigger. Raises Invalid for a cursor or a limit that is none.

    `blocking`: only what a run waits for.
    """
    if not 1 <= limit <= MOST:
        raise Invalid(f"limit: 1 to {MOST}", [{"path": "limit", "message": f"1 to {MOST}"}])
    found = open_requests(workspace).select_related("run")
    if by is not None:
        found = narrowed(found, by)
    if blocking:
        found = found.filter(mode="gate")
    if after is not None:
        if not (after.isascii() and after.isdigit() and len(after) < 19):
            raise Invalid("after: not a cursor of this list", [{"path": "after", "message": "not a cursor"}])
        found = found.filter(id__gt=int(after))
    rows = list(found[: limit + 1])
    more = len(rows) > limit
    shown = rows[:limit]
    return Page(items=[summary(row) for row in shown], next=str(shown[-1].pk) if more else None)


def summary(request: ApprovalRequest) -> dict[str, Any]:
    """One line of the queue."""
    line = {
        "key": str(request.key),
        "agent": request.agent_id,
        "runId": str(request.run.uuid),
        "step": request.step,
        "kind": request.kind,
        "phase": request.phase,
        "reason": request.reason,
        "createdAt": rfc3339(request.created_at),
        "expiresAt": rfc3339(request.expires_at),
    }
    if request.tool:
        line["toolName"] = request.tool
    if request.mode == "record":
        line["mode"] = request.mode  # no run waits for it
    if request.doubt:
        line["doubt"] = request.doubt
    return line


def detail(key: str, actor: Actor, workspace: str = WORKSPACE) -> dict[str, Any]:
    """What the decider needs. NotAllowed before any look-up; ApprovalNotFound with `decision` when it is over."""
    if not policy.may_view(actor):
        policy.need(policy.Verdict(allowed=False, rule=f"the permission {policy.VIEW} is needed"))
    request = open_requests(workspace).select_related("run").filter(key=key).first() if is_key(key) else None
    stored = None
    if request is not None:
        store = records.store_of(request.workspace, request.agent_id)
        stored = store.versioned(records.store_key(request.key))
    if request is None or stored is None:
        raise ApprovalNotFound(key, decision_of(key, workspace))
    record = stored.value
    records.check_format(record)
    shown = summary(request) | {
        "message": record["reason"],
        "action": record["action"],
        "outputs": codec.outputs_json(records.outputs_approved(record))["outputs"],
        "digest": record["digest"],
        "specHash": record["spec_hash"],
        "policy": jsontext.loads(request.policy),
        "policyText": policy.in_words(policy.policy_of(request)),
        "votes": ballots.standing(request)["by"],
        "may": _may(request, actor),
    }
    shown |= differing.told(request, record)
    if "advice" in record:
        shown["advice"] = record["advice"]
    form = policy.policy_of(request).form
    if form is not None:
        shown["form"] = form
    if "previous" in record:
        shown["reopenedFrom"] = record["previous"]
    return shown


def _may(request: ApprovalRequest, actor: Actor) -> dict[str, Any]:
    """What the caller may do with the request, and the rule that says so; `decide` is true if it is anything."""
    person = policy.Person(actor)
    approve, reject = (person.may(request, approve=approve) for approve in (True, False))
    allowed = approve.allowed or reject.allowed
    told = {"decide": allowed, "approve": approve.allowed, "reject": reject.allowed}
    told["breakGlass"] = person.may(request, approve=True, break_glass=True).allowed
    told["delegate"] = person.may_hand_on(request).allowed
    return told | {"rule": approve.rule if not approve.allowed else reject.rule}


def decision_of(key: str, workspace: str = WORKSPACE) -> dict[str, Any] | None:
    """What became of a key: its expiry, also when no sweep has closed it yet, or what the audit says.

    `recallUntil` is there as long as the approval can be withdrawn.
    """
    if not is_key(key):
        return None  # no database is asked for what it could not even hold
    ended = Q(status=RequestStatus.EXPIRED) | Q(status=RequestStatus.OPEN, expires_at__lte=DbNow())
    expired = ApprovalRequest.objects.filter(ended, workspace=workspace, key=key).first()
    if expired is not None:
        # The same before and after the sweep that closes it.
        return {"outcome": "expired", "by": None, "at": rfc3339(expired.expires_at), "surface": "system"}
    told = audit.decision_of(key.lower(), workspace)
    if told is not None and told["outcome"] == "approved":
        waits = ApprovalRequest.objects.filter(workspace=workspace, key=key, recall_until__gt=DbNow())
        until = waits.filter(status=RequestStatus.DECIDED).values_list("recall_until", flat=True).first()
        if until is not None:
            told["recallUntil"] = rfc3339(until)
    return told
