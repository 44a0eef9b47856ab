"""All of what a page shows clipped, as a file: the action, or one earlier output."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from approvals import looking, records
from approvals.admin import words
from approvals.admin.access import actor_of
from approvals.admin.decision import find_row
from approvals.models import ApprovalRequest
from approvals.records import Record
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.words import text_of
from workflows.engine.values import Json


def whole_view(site: ReadOnlyAdmin[ApprovalRequest], request: HttpRequest, pk: int) -> HttpResponse:
    """What is approved, exactly as it is stored. Noted: the audit of a decision says whether it was opened.

    It is not where another site sent the browser here: that was nobody's wish to read it.
    """
    site.need_view(request)
    row = find_row(pk)
    record = _record(row)
    user_id = actor_of(request).user_id
    sent_here = request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
    if request.method == "GET" and user_id is not None and not sent_here:
        looking.look(row, user_id, record["digest"])
    return _file(looking.whole(record), f"request-{row.pk}.json", is_json=True)


def output_view(site: ReadOnlyAdmin[ApprovalRequest], request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The output of an earlier step, by its place in the list."""
    site.need_view(request)
    row = find_row(pk)
    outputs: list[Json] = list(_record(row)["outputs"].values())
    if number >= len(outputs):
        raise Http404("There is no such output.")
    is_json = not isinstance(outputs[number], str)
    name = f"request-{row.pk}-output-{number + 1}.{'json' if is_json else 'txt'}"
    return _file(text_of(outputs[number]), name, is_json=is_json)


def _record(row: ApprovalRequest) -> Record:
    """What is shown of a request that is open; the content of one that is over is shown nowhere."""
    record = records.peek(row) if words.is_open(row) else None
    if record is None:
        raise Http404("This request is over.")
    return record


def _file(text: str, name: str, *, is_json: bool) -> HttpResponse:
    """To be kept, never to be shown by a browser: what is in it was written by others."""
    kind = "application/json" if is_json else "text/plain; charset=utf-8"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return HttpResponse(text.encode(), content_type=kind, headers=headers)
