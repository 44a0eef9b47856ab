"""A clerk who asks a service that is busy at first, and waits in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes_tools import FakeTools
from tests.workbench import HEAD, write_spec
from workflows.models import Run, RunEvent
from workflows.registry import SpecFile

#: first (PUT, tried again after `wait_ms`) - second (POST).
WAITING = (
    HEAD
    + """\
  tools:
    - name: first
      action: http_request
      method: PUT
      url: "{url}/${{PLACE}}"
      requires_approval: {approval}
      retry: {{max: 2, backoff: fixed, base_ms: {wait_ms}, max_delay_ms: 900000}}
      body: {{json: {{for: "{{{{ input }}}}"}}}}
    - {{name: second, action: http_request, method: POST, url: "{url}/second"}}
  workflow:
    - {{step: first, type: tool, tool: first}}
    - {{step: second, type: tool, tool: second}}
"""
)
BUSY: dict[str, Any] = {"status": 503, "text": "busy"}
GOOD: dict[str, Any] = {"json": {"ok": True}}


def waiting_spec(folder: Path, tools: FakeTools, *, wait: float, approval: bool = False, busy: int = 1) -> SpecFile:
    """The spec, and a service that is busy for so many calls of its first step."""
    tools.script = {"PUT /place": [*[BUSY] * busy, GOOD], "POST /second": GOOD}
    return write_spec(
        folder, WAITING, url=tools.url, wait_ms=str(int(wait * 1000)), approval="true" if approval else "false"
    )


def asked(tools: FakeTools) -> int:
    """How often the first step's call arrived."""
    return sum(request.method == "PUT" for request in tools.requests)


def told(run: Run) -> list[str]:
    """The kinds of the run's events in order."""
    return list(RunEvent.objects.filter(run=run).order_by("number").values_list("type", flat=True))


def outcomes(run: Run) -> list[str]:
    """What became of each attempt: `ok`, the status it failed with, or `open`."""
    rows = run.attempts.order_by("n").values_list("ended_at", "outcome")
    return ["open" if ended is None else "503" if "503" in outcome else outcome for ended, outcome in rows]
