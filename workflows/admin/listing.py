"""Pages of a list, cut by id: rows that leave or arrive between two clicks hide nothing and repeat nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from django import forms
from django.db.models import Model, QuerySet
from django.http import QueryDict

from workflows.models import WORKSPACE, SpecVersion

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, kw_only=True)
class Listed(Generic[M]):
    """The rows of one page, with the query strings of the next page and of the first ("" where there is none)."""

    rows: list[M]
    next: str
    first: str


def listed(found: QuerySet[M], query: QueryDict, *, size: int, newest_first: bool) -> Listed[M]:
    """The page after the row that `?after=` names, in the order of ids; a cursor that is none means the start."""
    after = query.get("after", "")
    if after.isascii() and after.isdigit() and len(after) < 19:
        found = found.filter(pk__lt=int(after)) if newest_first else found.filter(pk__gt=int(after))
    else:
        after = ""
    rows = list(found.order_by("-pk" if newest_first else "pk")[: size + 1])
    shown = rows[:size]
    return Listed(
        rows=shown,
        next=with_after(query, str(shown[-1].pk)) if len(rows) > size else "",
        first=with_after(query, "") if after else "",
    )


def with_after(query: QueryDict, after: str) -> str:
    """The query string with another cursor; "" takes it out."""
    changed = query.copy()
    changed.pop("after", None)
    if after:
        changed["after"] = after
    return "?" + changed.urlencode()


class FilterForm(forms.Form):
    """The filters above a list. A field that cannot be read is told beside it and filters nothing."""

    def chosen(self, name: str) -> str:
        """The field's cleaned value, "" when it is empty or wrong."""
        self.is_valid()
        return str(self.cleaned_data.get(name) or "")

    @property
    def narrowed(self) -> bool:
        """Whether any filter is set, so that an empty list can say why it is empty."""
        return any(self.chosen(name) for name in self.fields)


def agent_choices() -> list[tuple[str, str]]:
    """Every agent that ever started a run: their texts are few, however many the runs."""
    found = SpecVersion.objects.filter(workspace=WORKSPACE).order_by("agent_id").values_list("agent_id", flat=True)
    return [("", "All agents"), *((name, name) for name in found.distinct())]


def picked(query: QueryDict, limit: int) -> list[int]:
    """The ids of the rows that were ticked, each once, in order; what is no id, and all beyond the limit, is left.

    One tick may stand for several rows, with a comma between them.
    """
    texts = dict.fromkeys(text for ticked in query.getlist("pick") for text in ticked.split(","))
    return [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19][:limit]
