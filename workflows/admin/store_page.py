"""What services keep in the store, a kind at a time: incidents, locks, cursors, and what was seen or taken.

A page reads a range of keys and never counts: a million keys are as quick as ten. Keys that are made of what came from
outside are shown as fingerprints, but for an incident's, which is what an operator has to know it by.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse

from statestore import keys
from statestore.errors import BadKey
from statestore.overview import Kept, kept
from workflows.admin.acts import OPERATE
from workflows.admin.base import Crumb, ReadOnlyAdmin
from workflows.admin.entries import run_of, runs_by_uuid, shown_key
from workflows.admin.listing import FilterForm, Listed, agent_choices, with_after
from workflows.admin.words import Data, clipped, data
from workflows.models import WORKSPACE, Run, TriggerState

PER_PAGE = 50


@dataclass(frozen=True, kw_only=True)
class Section:
    """One kind of entry: its words, which columns it has, and the word on its button, "" where nothing is set back."""

    name: str
    kind: str
    label: str
    told: str
    empty: str
    button: str = ""
    has_key: bool = True
    has_value: bool = False
    has_run: bool = True


SECTIONS: Mapping[str, Section] = {
    section.name: section
    for section in (
        Section(
            name="incidents",
            kind=keys.INCIDENT,
            label="Open incidents",
            told="Opened by an open step, until a close step, their time or an operator ends them.",
            empty="No incident is open.",
            button="Close",
            has_value=True,
        ),
        Section(
            name="locks",
            kind=keys.LOCK,
            label="Locks",
            told="Held while a run of a schedule is going, so that the next due time starts none beside it.",
            empty="No lock is held.",
            button="Free",
            has_key=False,
        ),
        Section(
            name="cursors",
            kind=keys.CURSOR,
            label="Cursors",
            told="From where a poll goes on: what its last answer came to, as it is sent with the next one.",
            empty="No poll has a cursor.",
            button="Reset",
            has_key=False,
            has_value=True,
            has_run=False,
        ),
        Section(
            name="seen",
            kind=keys.SEEN,
            label="Seen items",
            told="Items of polls that started a run, by a fingerprint of their key. They start no other one.",
            empty="No item of a poll was seen.",
            button="Forget",
        ),
        Section(
            name="once",
            kind=keys.ONCE,
            label="Keys taken once",
            told="Taken by once steps, by their fingerprints. Until their time is over, who asks again is a repeat.",
            empty="No key is taken.",
        ),
        Section(
            name="deliveries",
            kind=keys.HOOK,
            label="Deliveries",
            told="Deliveries of webhooks and idempotency keys, by their fingerprints. A repeat starts no other run.",
            empty="No delivery is remembered.",
        ),
    )
}


class StoreFilter(FilterForm):
    """Whose entries."""

    agent = forms.ChoiceField(choices=agent_choices, required=False)


def store_page(site: ReadOnlyAdmin[TriggerState], request: HttpRequest, crumbs: Sequence[Crumb]) -> HttpResponse:
    """One kind; expired entries that the purge has not met yet are shown as what they are."""
    site.need_view(request)
    section = SECTIONS.get(request.GET.get("kind", ""), SECTIONS["incidents"])
    filters = StoreFilter(request.GET)
    agent = filters.chosen("agent") or None
    after = _position(request.GET.get("after", ""))
    found = kept(WORKSPACE, section.kind, workflow=agent, after=after, limit=PER_PAGE + 1)
    shown = found[:PER_PAGE]
    page: Listed[Run] = Listed(
        rows=[],
        next=with_after(request.GET, _place(shown[-1])) if len(found) > PER_PAGE else "",
        first=with_after(request.GET, "") if after is not None else "",
    )
    runs = runs_by_uuid(run_of(one) for one in shown)
    may = bool(section.button) and request.user.has_perm(OPERATE)
    return site.page(
        request,
        "workflows/admin/store.html",
        title="Store",
        crumbs=crumbs,
        tab="store",
        section=section,
        sections=SECTIONS.values(),
        filters=filters,
        agent=agent or "",
        rows=[_row(section, one) | {"link": runs.get(run_of(one)), "may": may and not one.expired} for one in shown],
        may=may,
        listed=page,
    )


def _row(section: Section, one: Kept) -> dict[str, Any]:
    return {
        "entry": one,
        "agent": clipped(one.workflow, 120),
        "key": clipped(shown_key(one.key), 200) if section.has_key else "",
        "value": _value(section, one),
        "run": clipped(run_of(one), 40),
    }


def _value(section: Section, one: Kept) -> Data | None:
    if not section.has_value:
        return None
    return data(one.value["value"] if section.kind == keys.INCIDENT else one.value)


def _place(one: Kept) -> str:
    return base64.urlsafe_b64encode(json.dumps([one.key, one.workflow]).encode()).decode()


def _position(text: str) -> tuple[str, str] | None:
    """What `_place` made of an entry; anything else means the start."""
    try:
        key, workflow = json.loads(base64.urlsafe_b64decode(text.encode("ascii")))
        keys.check_text(key, "key")
        keys.check_text(workflow, "workflow")
    except (ValueError, TypeError, RecursionError, BadKey):
        return None
    return key, workflow
