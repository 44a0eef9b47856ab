"""Specs and short ways that the tests of runs and decisions share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q

from approvals.actors import actor_for_user
from approvals.models import ApprovalRequest, RequestStatus
from statestore.clock import DbNow
from workflows.actors import Actor, Surface
from workflows.advance import advance
from workflows.models import Run, Status
from workflows.registry import SpecFile, read_spec
from workflows.runs import start_run

HEAD = """\
version: "1.1"
agent:
  id: {agent_id}
  name: Paying clerk
  role: Clerk
  goal: Pay what is due.
  model: {{provider: ollama, name: test-model}}
"""

#: look (GET) - pay (POST, waits for a person) - receipt (POST).
PAYING = (
    HEAD
    + """\
  tools:
    - {{name: look, action: http_request, method: GET, url: "{url}/invoice", extract: amount}}
    - name: pay
      action: http_request
      method: POST
      url: "{url}/pay"
      headers: {{Authorization: "Bearer ${{PAY_TOKEN}}"}}
      requires_approval: true
      body: {{json: {{amount: "{{{{ look }}}}", for: "{{{{ input }}}}"}}}}
    - name: receipt
      action: http_request
      method: POST
      url: "{url}/receipt"
      body: {{json: {{of: "{{{{ pay.id }}}}"}}}}
  workflow:
    - {{step: look, type: tool, tool: look}}
    - {{step: pay, type: tool, tool: pay}}
    - {{step: receipt, type: tool, tool: receipt}}
"""
)
PAYING_ANSWERS: dict[str, Any] = {
    "GET /invoice": {"json": {"amount": 120}},
    "POST /pay": {"json": {"id": "p-1"}},
    "POST /receipt": {"json": {"ok": True}},
}

#: Two approval steps and nothing outside.
ASKING = (
    HEAD
    + """\
  workflow:
    - {{step: first, type: approval, message: "Go on with {{{{ input }}}}?"}}
    - {{step: second, type: approval}}
"""
)

STARTER = Actor(label="starter", surface="api")


def write_spec(folder: Path, text: str, *, agent_id: str = "clerk", name: str = "spec.yaml", **words: str) -> SpecFile:
    """The template as a file on disk, loaded."""
    path = folder / name
    path.write_text(text.format(agent_id=agent_id, **words), encoding="utf-8")
    return read_spec(path)


def begin(spec_file: SpecFile, *, input: str = "go", actor: Actor = STARTER, **options: Any) -> Run:
    """A started (queued) run."""
    return start_run(spec_file, input=input, actor=actor, **options).run


def work() -> int:
    """Drive what is queued and due, as a worker would; how many runs."""
    done = 0
    while True:
        due = Q(not_before__isnull=True) | Q(not_before__lte=DbNow())
        queued = list(Run.objects.filter(due, status=Status.QUEUED).order_by("id"))
        for run in queued:
            advance(run.workspace, str(run.uuid))
        done += len(queued)
        if not queued:
            return done


def to_pause(spec_file: SpecFile, **options: Any) -> tuple[Run, str]:
    """A run that waits, and its key."""
    run = begin(spec_file, **options)
    work()
    run.refresh_from_db()
    assert run.status == Status.AWAITING, (run.status, run.error)
    return run, key_of(run)


def key_of(run: Run) -> str:
    """The key of the run's open request."""
    return str(ApprovalRequest.objects.get(run=run, status=RequestStatus.OPEN).key)


def acting(user: User, surface: Surface = "api") -> Actor:
    """This person on this surface."""
    return actor_for_user(user, surface)
