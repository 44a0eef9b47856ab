"""Specs that schedules start, and short ways to move time to their due times."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from statestore.clock import now
from tests.conftest import Clock
from workflows.codec import trigger_from
from workflows.engine import jsontext
from workflows.models import Run, TriggerState
from workflows.registry import SpecFile, read_spec

TEXT = """\
version: "1.2"
agent:
  id: {agent_id}
  name: Clerk
  role: Clerk
  goal: Do what is due.
  model: {model}
  trigger: {{type: schedule, cron: "{cron}"{keys}}}
{tools}  workflow:
{workflow}
"""
#: Ends by itself; waits for a person, twice.
ENDS = "    - {step: seen, type: once, key: k, ttl: 1d, on_repeat: continue}"
WAITS = '    - {step: first, type: approval, message: "Go on?"}\n    - {step: second, type: approval}'
LOCAL = "{provider: ollama, name: test-model}"
CLOUD = '{provider: openai, name: m, api_key: "${SCHEDULE_KEY}"}'


def scheduled(
    folder: Path,
    cron: str,
    *keys: str,
    agent_id: str = "clerk",
    workflow: str = ENDS,
    model: str = LOCAL,
    tools: str = "",
) -> SpecFile:
    """The spec in a file of its own, with these further keys of its trigger: `overlap: queue`, `lock_ttl: 10m`."""
    path = folder / f"{agent_id}.yaml"
    more = "".join(f", {key}" for key in keys)
    text = TEXT.format(agent_id=agent_id, cron=cron, keys=more, workflow=workflow, model=model, tools=tools)
    path.write_text(text, encoding="utf-8")
    return read_spec(path)


def move(clock: Clock, moment: datetime) -> None:
    """Make it this time, for every process of the test."""
    clock.advance((moment - now()).total_seconds())


def row(agent_id: str = "clerk") -> TriggerState:
    """The trigger as it is now."""
    return TriggerState.objects.get(agent_id=agent_id)


def due_of(run: Run) -> datetime:
    """The due time that a run was started for, as the run itself can read it."""
    return datetime.fromisoformat(trigger_from(jsontext.loads(run.trigger)).headers["scheduled-at"])


def started(agent_id: str = "clerk") -> list[datetime]:
    """The due times of this agent's runs, in the order of their start."""
    return [due_of(run) for run in Run.objects.filter(agent_id=agent_id, resumed_from=None).order_by("id")]
