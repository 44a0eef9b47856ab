"""The pages on which an operator sets an entry of the store back: what it does, why, and then the act, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from approvals.actors import actor_for_user
from statestore import keys
from statestore.overview import Kept, entry
from workflows.actors import Actor
from workflows.admin.acts import REFUSALS
from workflows.admin.base import Crumb, ReadOnlyAdmin
from workflows.admin.entries import run_of, runs_by_uuid, shown_key
from workflows.admin.words import clipped, data
from workflows.api.errors import failure_of
from workflows.desk import Reset
from workflows.models import WORKSPACE, TriggerState
from workflows.triggers.resets import close_incident, forget_seen, free_lock, reset_cursor


@dataclass(frozen=True, kw_only=True)
class Setback:
    """One kind of reset: the words on its page, and the door behind it, which takes the entry as it was looked at."""

    label: str
    warning: str
    done: str
    section: str
    door: Callable[[Kept, str, Actor, str], Reset]


def _cursor(one: Kept, mark: str, actor: Actor, reason: str) -> Reset:
    return reset_cursor(one.workflow, actor=actor, reason=reason, version=_number(mark))


def _lock(one: Kept, mark: str, actor: Actor, reason: str) -> Reset:
    return free_lock(one.workflow, actor=actor, reason=reason, run=mark)


def _incident(one: Kept, mark: str, actor: Actor, reason: str) -> Reset:
    key = one.key.removeprefix(keys.INCIDENT)
    return close_incident(one.workflow, key, actor=actor, reason=reason, version=_number(mark))


def _seen(one: Kept, mark: str, actor: Actor, reason: str) -> Reset:
    fingerprint = one.key.removeprefix(keys.SEEN)
    return forget_seen(one.workflow, fingerprint, actor=actor, reason=reason, version=_number(mark))


SETBACKS: Mapping[str, Setback] = {
    keys.CURSOR: Setback(
        label="Reset the cursor",
        warning="The next poll begins from the start, and is due at once. A poll that is being made now writes nothing "
        "more. Items that were seen stay seen: they start no other run.",
        done="The cursor was reset; the poll is due now and begins from the start.",
        section="cursors",
        door=_cursor,
    ),
    keys.LOCK: Setback(
        label="Free the lock",
        warning="The next due time starts a run, although the run that holds the lock may be going on still: then "
        "there are two at once. Nothing happens to the run itself; to end it, cancel it.",
        done="The lock was freed; the next due time starts a run.",
        section="locks",
        door=_lock,
    ),
    keys.INCIDENT: Setback(
        label="Close the incident",
        warning="The next alert with this key opens an incident anew. Nothing happens to the run that opened it: a "
        "close step that it comes to later finds nothing to close, and goes on.",
        done="The incident was closed.",
        section="incidents",
        door=_incident,
    ),
    keys.SEEN: Setback(
        label="Forget the item",
        warning="The item starts a run again when an answer of the poll holds it again. Nothing happens to the run "
        "that it started. Where the poll has a cursor, the service may not give it again unless that is reset too.",
        done="The item was forgotten: it starts a run when the poll meets it again.",
        section="seen",
        door=_seen,
    ),
}


class WhyForm(forms.Form):
    """Why; and the entry as it was looked at."""

    reason = forms.CharField(
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Kept in the audit.",
        error_messages={"required": "Say why, in a few words."},
    )


def reset_page(
    site: ReadOnlyAdmin[TriggerState], request: HttpRequest, row_id: int, crumbs: Sequence[Crumb]
) -> HttpResponse:
    """GET asks for the reason; POST acts, once. What was looked at comes back with the form as `mark`."""
    one = entry(WORKSPACE, row_id)
    setback = SETBACKS.get(keys.kind_of(one.key) or "") if one is not None else None
    if one is None or setback is None:
        raise Http404("There is no such entry any more: it was set back, or its time was over.")
    form = WhyForm(request.POST if request.method == "POST" else None)
    problem, status = "", 200
    if request.method == "POST" and form.is_valid():
        mark = request.POST.get("mark", "")
        try:
            setback.door(one, mark, actor_for_user(request.user, "admin"), form.cleaned_data["reason"])
        except REFUSALS as error:
            told = failure_of(error)
            problem, status = str(told.body["error"]), told.status
            one = entry(WORKSPACE, row_id)
        else:
            messages.success(request, setback.done)
            return HttpResponseRedirect(f"{reverse('admin:workflows_store')}?kind={setback.section}")
    elif request.method == "POST":
        status = 400
    return site.page(
        request,
        "workflows/admin/reset.html",
        title=setback.label,
        crumbs=crumbs,
        status=status,
        setback=setback,
        entry=one,
        mark=_mark(one) if one is not None else "",
        problem=problem[:1].upper() + problem[1:].rstrip("."),
        form=form,
        **(_facts(one) if one is not None else {}),
    )


def _facts(one: Kept) -> dict[str, Any]:
    run = run_of(one)
    return {
        "agent": clipped(one.workflow, 120),
        "key": "" if one.key.startswith((keys.LOCK, keys.CURSOR)) else clipped(shown_key(one.key), 400),
        "value": data(one.value) if one.key.startswith(keys.CURSOR) else None,
        "run": clipped(run, 40),
        "run_link": runs_by_uuid([run]).get(run),
    }


def _mark(one: Kept) -> str:
    """What of the entry must still be so: its version; of a lock, which is renewed all the time, its holder."""
    return run_of(one) if one.key.startswith(keys.LOCK) else str(one.version)


def _number(mark: str) -> int:
    """A version that no entry has where it is none."""
    return int(mark) if mark.isascii() and mark.isdigit() and len(mark) < 19 else -1
