"""What happened to a request and to the run that it stands in, as a list of sentences, the oldest first.

A fixed number of queries, however much happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.urls import reverse

from approvals.models import ApprovalRequest, AuditEntry
from workflows.admin.words import clipped
from workflows.engine import jsontext
from workflows.models import Run

#: Older acts than these are counted, not listed.
MOST = 40
DECIDE = "admin:approvals_approvalrequest_decide"
_NAME, _REASON = 100, 300


@dataclass(frozen=True, kw_only=True)
class Happened:
    """One line: when, who, what. `link` leads to another request of the same run, "" for this one."""

    at: datetime
    who: str
    what: str
    more: str = ""
    reason: str = ""
    where: str = ""
    link: str = ""
    #: Of this very request.
    mine: bool = False


@dataclass(frozen=True, kw_only=True)
class History:
    lines: tuple[Happened, ...]
    earlier: int = 0


def history_of(request: ApprovalRequest) -> History:
    """The start of the run, every request of its chain, and every act of a person or a rule on them."""
    root = request.run.root_id_or_own
    chain = Run.objects.filter(Q(pk=root) | Q(root_id=root), workspace=request.workspace).order_by("pk")
    runs = {pk: (uuid, started_by, at) for pk, uuid, started_by, at in chain.values_list(*_RUN)}
    asked = list(ApprovalRequest.objects.filter(run__in=runs, workspace=request.workspace).order_by("pk"))
    acts = AuditEntry.objects.filter(
        run__in=[str(uuid) for uuid, _, _ in runs.values()], workspace=request.workspace
    ).order_by("-pk")
    newest = list(acts[: MOST + 1])
    taken_back = {entry.key: entry.at for entry in newest if entry.act == "withdraw"}
    lines = [*_started(runs, root), *_acts(newest, asked, request), *_asked(asked, request, taken_back)]
    lines.sort(key=lambda line: line.at)
    return History(lines=tuple(lines[-MOST:]), earlier=max(0, len(lines) - MOST))


_RUN = ("pk", "uuid", "started_by", "created_at")


def _started(runs: dict[int, tuple[Any, str, datetime]], root: int) -> Iterator[Happened]:
    if root in runs:
        _, by, at = runs[root]
        yield Happened(at=at, who=clipped(by or "nobody", _NAME), what="started the run")


def _asked(
    asked: list[ApprovalRequest], request: ApprovalRequest, taken_back: dict[str, datetime]
) -> Iterator[Happened]:
    """`taken_back`: when the approval of which key was; in the same moment it is asked again, so that comes after."""
    for one in asked:
        earlier = str(one.reopened_from) if one.reopened_from else ""
        again = ", again: what would have run had changed" if earlier else ""
        if earlier in taken_back:
            again = ", again"
        yield Happened(
            at=max(one.created_at, taken_back.get(earlier, one.created_at)),
            who=f"Step “{clipped(one.step, _NAME)}”",
            what=f"asked for a decision{again}",
            link=_link(one, request),
            mine=one.pk == request.pk,
        )


def _link(one: ApprovalRequest, request: ApprovalRequest) -> str:
    return reverse(DECIDE, args=[one.pk]) if one.pk != request.pk else ""


def _acts(entries: list[AuditEntry], asked: list[ApprovalRequest], request: ApprovalRequest) -> Iterator[Happened]:
    of = {str(one.key): one for one in asked}
    for entry in entries:
        one = of.get(entry.key)
        mine = one is not None and one.pk == request.pk
        step = "" if mine or not entry.step else f" (step “{clipped(entry.step, _NAME)}”)"
        yield Happened(
            at=entry.at,
            who=_who(entry),
            what=f"{_what(entry)}{step}",
            more=_more(entry),
            reason=clipped(entry.reason, _REASON),
            where=entry.surface,
            link=_link(one, request) if one is not None else "",
            mine=mine,
        )


def _who(entry: AuditEntry) -> str:
    if entry.act in ("expire", "escalate"):
        return "Nobody"
    return clipped(entry.actor, _NAME) if entry.surface != "rule" else "A rule of the workflow"


def _what(entry: AuditEntry) -> str:
    details = details_of(entry)
    match entry.act:
        case "decide" if details.get("glass_broken"):
            return "broke the glass and approved"
        case "decide":
            return entry.outcome
        case "vote":
            return "approved, as one of several"
        case "edit":
            return "changed the action"
        case "delegate":
            return f"handed it to {clipped(str(details.get('to', 'somebody')), _NAME)}"
        case "rebind":
            return "bound it to the changed spec"
        case "withdraw":
            return "took the approval back"
        case "expire":
            return "decided in time: it expired"
        case "escalate":
            groups = clipped(", ".join(map(str, details.get("groups", []))), _NAME)
            return f"had decided by then: it was escalated to {groups}"
        case "cancel":
            return "cancelled the run"
        case "retry":
            return "retried the run"
        case "give_up":
            return "gave the run up"
        case "repair":
            return "brought it back in order"
    return clipped(entry.act, _NAME)


def _more(entry: AuditEntry) -> str:
    """In whose place somebody acted, and whether all was seen of what was shown in part."""
    details, told = details_of(entry), []
    rule = str(_read(entry.policy).get("rule", ""))
    if "was handed this by" in rule or "stands in for" in rule:
        told.append(clipped(rule, _REASON))
    if details.get("clipped"):
        told.append("opened the whole of it" if details.get("opened") else "did not open the whole of it")
    return "; ".join(told)


def details_of(entry: AuditEntry) -> dict[str, Any]:
    """What else belongs to the act; empty where there is nothing."""
    return _read(entry.details)


def _read(text: str) -> dict[str, Any]:
    found = jsontext.loads(text) if text else {}
    return found if isinstance(found, dict) else {}
