"""Specs with steps on the store, and what the tests of them look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from statestore.keys import INCIDENT, ONCE
from statestore.store import StateStore
from tests.workbench import HEAD, begin, work
from workflows.models import Run
from workflows.reading import run_state
from workflows.registry import SpecFile, read_spec
from workflows.runs import newest

NOWHERE = "http://127.0.0.1:9"
#: `input` is the key.
ONCE_STEP = '{step: first, type: once, key: "{{ input }}", ttl: 1d}'
OPEN_STEP = '{step: open, type: open, key: "{{ input }}", value: {about: "{{ input }}"}, ttl: 7d}'
CLOSE_STEP = '{step: close, type: close, key: "{{ input }}"}'
ASK_STEP = "{step: ask, type: approval}"
LOOK_STEP = "{step: look, type: tool, tool: look}"
POST_STEP = "{step: post, type: tool, tool: post}"
FAIL_STEP = "{step: fail, type: tool, tool: fail}"
MODEL_STEP = "{step: think, action: think}"
TOOLS = """\
  tools:
    - {name: look, action: http_request, method: GET, url: "URL/look"}
    - {name: post, action: http_request, method: POST, url: "URL/post"}
    - {name: fail, action: http_request, method: GET, url: "URL/fail"}
"""
ANSWERS: dict[str, Any] = {
    "GET /look": {"json": {"seen": True}},
    "POST /post": {"json": {"done": True}},
    "GET /fail": {"status": 404, "json": {}},
}


def a_spec(folder: Path, *steps: str, agent_id: str = "clerk", url: str = NOWHERE, more: str = "") -> SpecFile:
    """The steps as a file on disk, loaded."""
    head = HEAD.replace('"1.1"', '"1.2"').format(agent_id=agent_id)
    lines = "".join(f"    - {step}\n" for step in steps)
    path = folder / f"{agent_id}.yaml"
    path.write_text(f"{head}{more}{TOOLS.replace('URL', url)}  workflow:\n{lines}", encoding="utf-8")
    return read_spec(path)


def done(spec: SpecFile, key: str = "k") -> Run:
    """A run with this key, driven as far as it goes."""
    run = begin(spec, input=key)
    work()
    return newest(run)


def output(run: Run, step: str) -> Any:
    """What the step gave, as the run's trace tells it."""
    given = [one["output"] for one in run_state(run)["trace"] if one["step"] == step and one["status"] == "completed"]
    assert len(given) == 1, run_state(run)
    return given[0]


def told(run: Run, step: str) -> int:
    """How often the run's own events say that the step completed."""
    return sum(one.payload.startswith(f'{{"step":"{step}"') for one in run.events.filter(type="step_completed"))


def keys(agent_id: str = "clerk", workspace: str = "default") -> dict[str, Any]:
    """What is kept for this agent, by whole key."""
    return {
        entry.key: entry.value
        for kind in (ONCE, INCIDENT)
        for entry in StateStore(workspace, agent_id, kinds=(kind,)).entries(kind)
    }
