"""Acts on runs: which ones a run's status allows, and one door for one or many (scenario: bulk on mixed rows)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.db import InterfaceError, OperationalError

from workflows.actors import Actor
from workflows.api.errors import failure_of
from workflows.errors import NotPossible, Refusal
from workflows.models import Run
from workflows.runs import cancel_run, give_up_run, newest, possible_acts, retry_run

OPERATE = "workflows.operate_run"

#: What a service may answer instead of doing it: a refusal, or a database that is busy or away.
REFUSALS = (Refusal, OperationalError, InterfaceError)


@dataclass(frozen=True, kw_only=True)
class Act:
    """An operator's act: the words on its page, and the service behind it."""

    name: str
    label: str
    warning: str
    done: str
    needs_reason: bool
    tone: str
    door: Callable[..., Run]


ACTS: Mapping[str, Act] = {
    act.name: act
    for act in (
        Act(
            name="retry",
            label="Retry",
            warning="The run goes on at the step where it stopped, with the same outputs and the same decision. The "
            "call that was open may have taken effect already: look at the other side first, because it is made again.",
            done="The run goes on at the step where it stopped.",
            needs_reason=True,
            tone="main",
            door=retry_run,
        ),
        Act(
            name="give_up",
            label="Give up",
            warning="The run ends as failed. Nothing more is called, and it cannot be retried from here.",
            done="The run ended as failed.",
            needs_reason=True,
            tone="danger",
            door=give_up_run,
        ),
        Act(
            name="cancel",
            label="Cancel run",
            warning="The run ends as cancelled. If it waits for approval, nobody can decide it any more; if it is "
            "working, the call that is being made is not stopped, but no other starts.",
            done="The run was cancelled.",
            needs_reason=False,
            tone="danger",
            door=cancel_run,
        ),
    )
}
BULK = ("retry", "cancel")


def drawn(run: Run) -> list[Act]:
    """The acts that this run's status allows now."""
    possible = possible_acts(run)
    return [act for act in ACTS.values() if act.name in possible]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of one act: the run to look at, or a sentence why not, with its status."""

    run: Run
    problem: str = ""
    status: int = 200


def perform(act: Act, run: Run, actor: Actor, reason: str) -> Answer:
    """Do it, once. A refusal comes back as a sentence with what to do next; it changed nothing."""
    try:
        return Answer(run=act.door(run, actor=actor, reason=reason.strip()))
    except REFUSALS as error:
        told = failure_of(error)
        problem = str(told.body["error"])
        if isinstance(error, NotPossible):
            present = newest(run)
            if present.pk != run.pk:
                problem = f"the run went on meanwhile as {present.uuid}; look at that one"
            run = present
        return Answer(run=run, problem=problem[:1].upper() + problem[1:], status=told.status)
