"""The filters above the queue, each choice with how many wait behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import AbstractUser
from django.db.models import Count, Q, QuerySet
from django.http import QueryDict

from approvals import counting
from approvals.models import ApprovalRequest, Audience, RequestStatus
from approvals.narrowing import Narrowing, Requests, is_key, narrowed, waits_for
from approvals.queue import open_requests
from statestore.clock import DbNow
from workflows.admin.listing import FilterForm, agent_choices
from workflows.models import WORKSPACE
from workflows.spec import durations

WAITING = "waiting"
_STATUSES = {
    WAITING: "Waiting",
    "decided": "Decided",
    "expired": "Expired",
    "cancelled": "Cancelled or withdrawn",
    "all": "All, newest first",
}
_SPANS = {"1h": "1 hour", "4h": "4 hours", "1d": "1 day", "1w": "1 week"}
_SOON = ("1h", "4h", "1d")
#: Choices of one filter: a longer list is no help, and the address takes any name.
_MOST = 100


@dataclass(frozen=True, kw_only=True)
class Known:
    """What there is to choose; steps and groups with their counts among the thousand that wait longest."""

    agents: list[tuple[str, str]]
    steps: dict[str, int]
    groups: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many wait, for this person, behind the filters (None where the page has them all), and behind each choice."""

    everything: int
    mine: int
    found: int | None
    words: Mapping[str, str]


def known(given: QueryDict) -> Known:
    """Asked in three queries. What was chosen is a choice also when nothing waits there any more."""
    waiting = open_requests()
    oldest = waiting.filter(agent_id=given["agent"]) if _sound(given.get("agent")) else waiting
    return Known(
        agents=agent_choices()[1:],
        steps=_with(_steps(oldest), given.get("step")),
        groups=_with(_groups(waiting), given.get("group")),
    )


def counts(user: AbstractUser, choices: Known, found: Requests | None) -> Counts:
    """Asked in one query, and one more for those in whose place the person may act."""
    waiting = open_requests()
    asked: dict[str, Requests] = {"all": waiting, "mine.me": waits_for(waiting, user)}
    asked |= {f"agent.{name}": waiting.filter(agent_id=name) for name, _ in choices.agents[:_MOST]}
    asked |= {f"age.{span}": narrowed(waiting, Narrowing(older_than=_span(span))) for span in _SPANS}
    asked |= {f"expiring.{span}": narrowed(waiting, Narrowing(expires_within=_span(span))) for span in _SOON}
    counted = counting.bounded(asked if found is None else asked | {"found": found})
    words = {name: counting.in_words(count) for name, count in counted.items()}
    cut = counted["all"] > counting.MOST
    words |= {f"step.{name}": counting.in_words(count, least=cut) for name, count in choices.steps.items()}
    words |= {f"group.{name}": counting.in_words(count, least=cut) for name, count in choices.groups.items()}
    return Counts(everything=counted["all"], mine=counted["mine.me"], found=counted.get("found"), words=words)


def _span(text: str) -> timedelta:
    return timedelta(seconds=durations.seconds(text))


def _oldest(waiting: Requests) -> Any:
    """The thousand that wait longest: whatever there is to count by what no index holds is counted among these."""
    return waiting.order_by("id").values("pk")[: counting.MOST + 1]


def _steps(waiting: Requests) -> dict[str, int]:
    among = ApprovalRequest.objects.filter(pk__in=_oldest(waiting))
    return dict(among.values("step").annotate(n=Count("pk")).order_by("step").values_list("step", "n")[:_MOST])


def _groups(waiting: Requests) -> dict[str, int]:
    to_group = Q(kind="group") | Q(kind="later", request__escalate_at__lte=DbNow())
    among = Audience.objects.filter(to_group, request__in=_oldest(waiting))
    found = among.values("name").annotate(n=Count("request", distinct=True)).order_by("name")
    return dict(found.values_list("name", "n")[:_MOST])


def _with(names: dict[str, int], chosen: str | None) -> dict[str, int]:
    return names if chosen is None or chosen in names or not _sound(chosen) else names | {chosen: 0}


def _sound(text: str | None) -> bool:
    """Whether the database can be asked for this text."""
    return bool(text) and "\x00" not in str(text)


class QueueFilter(FilterForm):
    """Filters of the queue; without a status, what waits."""

    q = forms.CharField(
        label="Search",
        max_length=100,
        required=False,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": "Agent, step, question or key"}),
    )
    mine = forms.ChoiceField(label="Waits for", required=False)
    agent = forms.ChoiceField(label="Workflow", required=False)
    step = forms.ChoiceField(required=False)
    group = forms.ChoiceField(required=False)
    age = forms.ChoiceField(label="Older than", required=False)
    expiring = forms.ChoiceField(label="Expires within", required=False)
    status = forms.ChoiceField(choices=[("", _STATUSES[WAITING]), *list(_STATUSES.items())[1:]], required=False)

    #: What stands above the fold on a small screen.
    first = ("q",)

    def __init__(self, given: QueryDict, choices: Known) -> None:
        super().__init__(given)
        self._choices = choices
        self._offer({})

    def tell(self, words: Mapping[str, str]) -> None:
        """Say beside each choice how many wait behind it."""
        self._offer(words)

    def _offer(self, words: Mapping[str, str]) -> None:
        names = self._choices
        offered: dict[str, tuple[str, Iterable[tuple[str, str]]]] = {
            "mine": ("Anybody", [("me", "Me")]),
            "agent": ("All", names.agents),
            "step": ("All", [(name, name) for name in names.steps]),
            "group": ("All", [(name, name) for name in names.groups]),
            "age": ("Any time", _SPANS.items()),
            "expiring": ("Any time", [(span, _SPANS[span]) for span in _SOON]),
        }
        for field, (everything, choices) in offered.items():
            counted = [
                (value, f"{text} ({words[f'{field}.{value}']})" if f"{field}.{value}" in words else text)
                for value, text in choices
            ]
            self.fields[field].choices = [("", everything), *counted]  # type: ignore[attr-defined]  # ChoiceFields all

    @property
    def status_shown(self) -> str:
        """A whole key finds its request whatever became of it."""
        return self.chosen("status") or ("all" if is_key(self.chosen("q").strip()) else WAITING)

    @property
    def folded(self) -> list[forms.BoundField]:
        """All but the first ones."""
        return [self[name] for name in self.fields if name not in self.first]

    @property
    def set_below(self) -> int:
        """How many of the folded ones are set."""
        return sum(bool(self.chosen(name)) for name in self.fields if name not in self.first)

    @property
    def faulty_below(self) -> bool:
        """Whether something is wrong with a folded one, which must not stay out of sight."""
        return any(self[name].errors for name in self.fields if name not in self.first)

    def found(self, user: AbstractUser) -> Requests:
        """The requests that fit."""
        return narrowed(
            _of_status(self.status_shown),
            Narrowing(
                agent=self.chosen("agent"),
                step=self.chosen("step"),
                group=self.chosen("group"),
                mine=user if self.chosen("mine") else None,
                older_than=_span(self.chosen("age")) if self.chosen("age") else None,
                expires_within=_span(self.chosen("expiring")) if self.chosen("expiring") else None,
                q=self.chosen("q"),
            ),
        )


def _of_status(status: str) -> Requests:
    every: QuerySet[ApprovalRequest] = ApprovalRequest.objects.filter(workspace=WORKSPACE)
    if status == WAITING:
        waiting: Requests = open_requests()
        return waiting
    if status == "expired":
        unswept = Q(status=RequestStatus.OPEN, expires_at__lte=DbNow())
        return every.filter(unswept | Q(status=RequestStatus.EXPIRED))
    if status == "decided":
        return every.filter(status=RequestStatus.DECIDED)
    if status == "cancelled":
        return every.filter(status__in=[RequestStatus.CANCELLED, RequestStatus.WITHDRAWN])
    return every
