"""What may start a run of version 1.2: a webhook, a schedule, a poll (spec 1.2, Triggers)."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from typing import Any, Final

from cronsim import CronSim, CronSimError

from workflows.spec import texts
from workflows.spec.durations import duration
from workflows.spec.errors import Path, clipped
from workflows.spec.model import Json
from workflows.spec.shapes import Faults, Record, Text, Word, kind_of, one_of, wrong_type

#: CronSim wants to know from when on; whether a text is a schedule does not depend on it.
_SOME_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
#: Every minute and every hour written out are less than 300; each look at what is due reads the text again.
_MOST_CRON: Final = 1000


def _is_cron(value: str, path: Path, faults: Faults) -> None:
    problem = cron_problem(value)
    if problem:
        faults.soft(path, f'"{path[-1]}" {problem}')


def cron_problem(text: str) -> str | None:
    """Why a text is no schedule; None when it is one. Five fields: programs disagree about where a sixth one goes."""
    if len(text) > _MOST_CRON:
        return f"has {len(text)} characters; a schedule has {_MOST_CRON} at most"
    if len(text.split()) != 5:
        return 'must have five fields: minute, hour, day of the month, month, day of the week, as in "0 8 * * mon-fri"'
    try:
        due = next(CronSim(text, _SOME_MOMENT), None)
    except CronSimError as error:
        return f"is not a schedule: {clipped(str(error))}"
    return "is never due" if due is None else None


def _is_zone(value: str, path: Path, faults: Faults) -> None:
    if value not in zoneinfo.available_timezones():
        faults.soft(path, f'"{clipped(value)}" is not a time zone; write one such as "Asia/Singapore" or "UTC"')


def _dedupe_ttl_needs_dedupe(trigger: dict[str, Any], path: Path, faults: Faults) -> None:
    if "dedupe_ttl" in trigger and "dedupe" not in trigger:
        faults.soft((*path, "dedupe_ttl"), '"dedupe_ttl" needs "dedupe" beside it')


WEBHOOK = Record(
    name="webhook trigger",
    keys={
        "type": Word(words=("webhook",)),
        "secret": texts.EnvPlaceholder(),
        "dedupe": texts.NON_EMPTY,
        "dedupe_ttl": duration,
    },
    required=frozenset({"type"}),
    closed=True,
    rules=(_dedupe_ttl_needs_dedupe,),
)
SCHEDULE = Record(
    name="schedule trigger",
    keys={
        "type": Word(words=("schedule",)),
        "cron": Text(rules=(_is_cron,)),
        "timezone": Text(rules=(_is_zone,)),
        "input": texts.PLAIN,
        "overlap": Word(words=("skip", "queue")),
        "lock_ttl": duration,
    },
    required=frozenset({"type", "cron"}),
    closed=True,
)
POLL = Record(
    name="poll trigger",
    keys={
        "type": Word(words=("poll",)),
        "every": duration,
        "tool": texts.NON_EMPTY,
        "items": texts.NON_EMPTY,
        "key": texts.NON_EMPTY,
        "cursor": texts.NON_EMPTY,
        "seen_ttl": duration,
    },
    required=frozenset({"type", "every", "tool", "items", "key"}),
    closed=True,
)
TRIGGERS = {"webhook": WEBHOOK, "schedule": SCHEDULE, "poll": POLL}


def trigger(value: Json, path: Path, faults: Faults) -> Json:
    """A trigger of the kind that its `type` names."""
    if not isinstance(value, dict):
        wrong_type("a mapping", value, path, faults)
        return value
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in TRIGGERS:
        given = f'"{clipped(kind)}"' if isinstance(kind, str) else kind_of(kind)
        found = f"not {given}" if "type" in value else "it is missing"
        faults.hard((*path, "type"), f'"type" must be {one_of(TRIGGERS)}; {found}')
        return value
    return TRIGGERS[kind](value, path, faults)
