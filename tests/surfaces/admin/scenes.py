"""Runs in every condition that a page shows, made through the real services."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from statestore.clock import now
from tests.fakes_models import FakeModels
from tests.workbench import ASKING, HEAD, PAYING, STARTER, begin, to_pause, work, write_spec
from workflows.actors import Actor
from workflows.models import Attempt, Run, Status
from workflows.recovery import recover
from workflows.registry import SpecFile

JUDGING = """\
version: "1.1"
agent:
  id: judge
  name: Judge
  role: Judge
  goal: Say what is due.
  model: {{provider: ollama, name: test-model, base_url: "{url}"}}
  guardrails: {{confidence_threshold: 0.8, fallback_action: escalate_to_human}}
  workflow:
    - {{step: classify, type: action, action: "Classify the complaint", confidence_gate: true}}
    - {{step: done, type: approval}}
"""
UNSURE = {
    "classify": {"result": {"kind": "complaint", "urgent": True, "words": ["late", "broken"]}, "confidence": 0.41}
}

FAILING = (
    HEAD
    + """\
  tools:
    - {{name: broken, action: http_request, method: GET, url: "{url}/broken"}}
  workflow:
    - {{step: fetch, type: tool, tool: broken}}
"""
)

TELLING = (
    HEAD
    + """\
  tools:
    - name: tell
      action: slack_post_message
      requires_approval: true
      token: "${{CHAT_TOKEN}}"
      channel: "#ops"
      text: "{{{{ input }}}}"
    - name: write
      action: gmail_send
      requires_approval: true
      token: "${{MAIL_TOKEN}}"
      to: "Bo Müller <bo@example.org>"
      subject: "Parcel 118"
      body: "{{{{ input }}}}"
    - name: part
      action: component
      requires_approval: true
      use: kampong/slack@1.0.0
      op: post_message
      with: {{channel: "#ops", text: "{{{{ input }}}}"}}
      secrets: {{token: "${{CHAT_TOKEN}}"}}
  workflow:
    - {{step: notify, type: tool, tool: {tool}}}
"""
)
LETTER = "The parcel 118 is late\n\nIt was promised for Monday.\nNow it is said to come on *Thursday*; see <https://example.org/118>."


def asking(folder: Path, *, agent_id: str = "clerk", message: str | None = None) -> SpecFile:
    """Two approval steps; `message` replaces the first one's question."""
    text = ASKING if message is None else ASKING.replace("Go on with {{{{ input }}}}?", message)
    return write_spec(folder, text, agent_id=agent_id, name=f"{agent_id}.yaml")


def paying(folder: Path, url: str, *, agent_id: str = "payer") -> SpecFile:
    """A call, a call that waits for a person, a call."""
    return write_spec(folder, PAYING, agent_id=agent_id, name=f"{agent_id}.yaml", url=url)


def telling(folder: Path, tool: str) -> SpecFile:
    """A message that waits for a person: `tell` (Slack), `write` (Gmail) or `part` (a component)."""
    return write_spec(folder, TELLING, agent_id=f"herald-{tool}", name=f"herald-{tool}.yaml", tool=tool)


def waiting_at_guardrail(folder: Path) -> tuple[Run, str]:
    """A run whose answer was not sure enough, and its key."""
    with FakeModels(UNSURE) as models:
        return to_pause(write_spec(folder, JUDGING, name="judge.yaml", url=models.url))


def failed(folder: Path, url: str) -> Run:
    """A run whose only call got no good answer."""
    run = begin(write_spec(folder, FAILING, agent_id="fetcher", name="fetcher.yaml", url=url))
    work()
    run.refresh_from_db()
    assert run.status == Status.FAILED, (run.status, run.error)
    return run


def interrupted(spec: SpecFile, *, actor: Actor = STARTER) -> Run:
    """A run whose worker was lost during its first call, found by the recovery."""
    run = begin(spec, actor=actor)
    Run.objects.filter(pk=run.pk).update(
        status=Status.RUNNING,
        lease_owner="gone",
        lease_token=1,
        lease_until=now() - timedelta(minutes=5),
        step="look",
        started_at=now(),
    )
    Attempt.objects.create(run=run, step_index=0, step="look", n=1, kind="tool", name="look", started_at=now())
    recover()
    run.refresh_from_db()
    assert run.status == Status.INTERRUPTED, (run.status, run.error)
    return run


def many(spec: SpecFile, count: int) -> list[tuple[Run, str]]:
    """So many runs that wait, and their keys, the oldest first."""
    return [to_pause(spec, input=f"case {number}") for number in range(count)]
