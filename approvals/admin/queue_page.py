"""The list of requests: filters, counts, identical actions folded; and the part of it that is fetched again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse

from approvals import counting, policy
from approvals.admin import bulk, words
from approvals.admin.access import actor_of
from approvals.admin.queue_filters import WAITING, Counts, QueueFilter, counts, known
from approvals.models import ApprovalRequest, RequestStatus
from approvals.narrowing import waits_for
from approvals.queue import open_requests
from statestore.clock import now
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.listing import Listed, listed
from workflows.admin.words import ago, clipped
from workflows.registry import present_hash

PER_PAGE = 50
#: A request that asks for the list alone says so in this header; the page's own script does.
PART = "X-Kampong-Part"
_SOON, _VERY_SOON = timedelta(hours=4), timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Like:
    """Rows that would do exactly the same; most often one."""

    rows: list[dict[str, Any]]

    @property
    def first(self) -> dict[str, Any]:
        """The one that waits longest, which stands for all."""
        return self.rows[0]

    @property
    def askers(self) -> int:
        """How many different people asked."""
        return len({row["by"] for row in self.rows})

    @property
    def picks(self) -> str:
        """What a tick for all of them sends: those that the person may decide."""
        return picks_of(self.rows)


def queue_page(site: ReadOnlyAdmin[ApprovalRequest], request: HttpRequest) -> HttpResponse:
    """The page, or the list alone where only that is asked for."""
    part = request.headers.get(PART) == "list"
    user: Any = request.user
    choices = known(request.GET)
    filters = QueueFilter(request.GET, choices)
    status = filters.status_shown
    found = filters.found(user)
    page = listed(found.select_related("run"), request.GET, size=PER_PAGE, newest_first=status != WAITING)
    counted = counts(user, choices, found if page.next or page.first else None)
    filters.tell(counted.words)
    person = policy.Person(actor_of(request))
    person.look_at(page.rows)
    acts = bulk.ACTS if status == WAITING and person.at_all.allowed else ()
    drifted = _drifted(page.rows) if status == WAITING else set()
    rows = [
        _row(row) | {"may": bool(acts) and person.may(row).allowed, "spec_changed": row.pk in drifted}
        for row in page.rows
    ]
    context: dict[str, Any] = {
        "filters": filters,
        "is_waiting": status == WAITING,
        "waiting_count": counted.everything,
        "lead": _lead(counted, filters, page),
        "groups": folded(rows),
        "all_picks": picks_of(rows),
        "listed": page,
        "acts": acts,
        "query": request.GET.urlencode(),
    }
    request._waiting_for_me = counted.mine  # type: ignore[attr-defined]  # counted already: the header asks no more
    if part:
        answer = TemplateResponse(request, "approvals/admin/queue_list.html", context)
        answer.headers["Cache-Control"] = "no-store"
        return answer
    return site.page(request, "approvals/admin/queue.html", title="Approval requests", **context)


def count_view(site: ReadOnlyAdmin[ApprovalRequest], request: HttpRequest) -> HttpResponse:
    """How many requests wait for whoever asks, in words, for the header of pages that are open."""
    site.need_view(request)
    user: Any = request.user
    waiting = counting.bounded_count(waits_for(open_requests(), user))
    return JsonResponse({"waiting": counting.in_words(waiting)}, headers={"Cache-Control": "no-store"})


def _lead(counted: Counts, filters: QueueFilter, page: Listed[ApprovalRequest]) -> dict[str, str]:
    """The sentence above the list, in parts: how many wait, for this person, and behind these filters."""
    lead = {"all": counting.in_words(counted.everything), "mine": counting.in_words(counted.mine)}
    if filters.narrowed:
        lead["found"] = counting.in_words(len(page.rows) if counted.found is None else counted.found)
    return lead


def folded(rows: Iterable[dict[str, Any]]) -> list[Like]:
    """The rows of a page with identical actions together, where the first of them stands."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        asked: ApprovalRequest = row["request"]
        same = (asked.agent_id, asked.step, asked.kind, asked.tool, asked.phase, asked.mode)
        told = (row["line"], row["doubt"], row["spec_changed"])
        found.setdefault((*same, asked.status, asked.policy, asked.digest, *told), []).append(row)
    return [Like(rows=alike) for alike in found.values()]


def _drifted(rows: Iterable[ApprovalRequest]) -> set[int]:
    """Those whose spec's file is not the one that they were asked under; each file is looked at once."""
    present: dict[tuple[str, str], str | None] = {}
    found = set()
    for row in rows:
        place = (row.agent_id, row.run.source)
        if place not in present:
            present[place] = present_hash(*place)
        if present[place] != row.spec_hash:
            found.add(row.pk)
    return found


def picks_of(rows: Iterable[dict[str, Any]]) -> str:
    """The ids of those among the rows that the person may decide, as one tick sends them."""
    return ",".join(str(row["request"].pk) for row in rows if row["may"])


def _row(request: ApprovalRequest) -> dict[str, Any]:
    is_open = request.status == RequestStatus.OPEN
    left = request.expires_at - now()
    return {
        "request": request,
        "step": clipped(request.step, 120),
        "by": clipped(request.run.started_by or "nobody", 80),
        "line": words.line_of(request),
        "badge": words.badge_of(request),
        "left": words.left(request) if is_open else "",
        "soon": "bad" if left < _VERY_SOON else "wait" if left < _SOON else "",
        "doubt": request.doubt if is_open else "",
        "age": ago(request.created_at),
    }
