"""The filters above the queue, each choice with how many wait behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
    "cancelled": "Cancelled",
    "all": "All, newest first",
}
_SPANS = {"1h": "1 hour", "4h": "4 hours", "1d": "1 day", "1w": "1 week"}
_SOON = ("1h", "4h", "1d")
#: Choices of one filter: a longer list is no help, and the address takes any name.
_MOST = 100


@dataclass(frozen=True, kw_only=True)
class Known:
    """What there is to choose, and the counts in words by `field.value`; `mine` and `all` as numbers."""

    agents: list[tuple[str, str]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    words: Mapping[str, str] = field(default_factory=dict)
    everything: int = 0
    mine: int = 0


def known(user: AbstractUser, given: QueryDict) -> Known:
    """Asked in four queries, each of which looks at a bounded number of rows."""
    waiting = open_requests()
    agents = agent_choices()
    asked: dict[str, Requests] = {"all": waiting, "mine.me": waits_for(waiting, user)}
    asked |= {f"agent.{name}": waiting.filter(agent_id=name) for name, _ in agents[1 : _MOST + 1]}
    asked |= {f"age.{span}": narrowed(waiting, Narrowing(older_than=_span(span))) for span in _SPANS}
    asked |= {f"expiring.{span}": narrowed(waiting, Narrowing(expires_within=_span(span))) for span in _SOON}
    counts = counting.bounded(asked)
    oldest = waiting.filter(agent_id=given["agent"]) if given.get("agent") else waiting
    steps, groups = _steps(oldest), _groups(waiting)
    words = {name: counting.in_words(count) for name, count in counts.items()}
    cut = counts["all"] > counting.MOST
    words |= {f"step.{name}": counting.in_words(count, least=cut) for name, count in steps.items()}
    words |= {f"group.{name}": counting.in_words(count, least=cut) for name, count in groups.items()}
    return Known(
        agents=agents,
        steps=_with(steps, given.get("step")),
        groups=_with(groups, given.get("group")),
        words=words,
        everything=counts["all"],
        mine=counts["mine.me"],
    )


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


def _with(names: Iterable[str], chosen: str | None) -> list[str]:
    """What was chosen is a choice also when nothing waits there any more."""
    return sorted({*names, chosen} if chosen and "\x00" not in chosen else names)


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
        self._words = choices.words
        self._offer("mine", "Anybody", [("me", "Me")])
        self._offer("agent", "All", choices.agents[1:])
        self._offer("step", "All", [(name, name) for name in choices.steps])
        self._offer("group", "All", [(name, name) for name in choices.groups])
        self._offer("age", "Any time", list(_SPANS.items()))
        self._offer("expiring", "Any time", [(span, _SPANS[span]) for span in _SOON])

    def _offer(self, name: str, everything: str, choices: Iterable[tuple[str, str]]) -> None:
        offered = [("", everything)]
        for value, text in choices:
            count = self._words.get(f"{name}.{value}")
            offered.append((value, f"{text} ({count})" if count is not None else text))
        self.fields[name].choices = offered  # type: ignore[attr-defined]  # a ChoiceField, as all of them are

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
