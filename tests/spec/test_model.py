"""What a loaded spec looks like."""

from __future__ import annotations

import subprocess
import sys

import pydantic
import pytest

from tests.spec.specs import accepted, spec
from workflows.spec import model
from workflows.spec.trigger_model import WebhookTrigger

FULL = spec(
    """\
  model: {provider: openai, name: m, api_key: "${OPENAI_KEY}", timeout_ms: 3e4}
  guardrails: {confidence_threshold: 0.7, fallback_action: escalate_to_human}
  knowledge_base: [{type: url, source: "https://example.net"}]
  trigger: {type: webhook, secret: ignored}
  approval_notifier: {type: slack, token: "${SLACK}", channel: "#ops"}
  tools:
    - name: find
      action: http_request
      requires_approval: true
      method: POST
      url: https://example.net/
      headers: {Z: "1", A: "2"}
      body: {json: {b: 1, a: [2.0]}}
      failure_when: [{path: a, equals: null}, {path: b, exists: false, message_path: c, retryable: true}]
      pace: {rps: 0.5}
      retry: {max: 2.0}
      colour: red
    - {name: tell, action: slack_post_message, token: "${SLACK}", channel: c, text: t}
    - {name: write, action: gmail_send, token: "${MAIL}", to: a, subject: b, body: c}
    - {name: part, action: component, use: acme/mailer@1.4.0, op: send, with: {to: [1]}, config: {a: b}}
    - {name: find, action: http_request, method: GET, url: second, response: {mode: text}}
  workflow:
    - step: a
      action: b
      inputs: [x, y]
      output_schema: {type: object, properties: {n: {type: integer, default: 2.0}}}
    - {step: c, type: condition, if: a.n > 1, then: execute_tool(find), else: request_human_approval}
    - {step: d, type: tool, tool: find}
    - {step: e, type: approval, action_: ignored}
"""
)


@pytest.fixture(scope="module")
def agent() -> model.Agent:
    loaded = accepted("vars:\n  z: {type: list}\n  a: {type: string, default: ''}\n" + FULL)
    assert loaded.spec is not None
    assert {name: decl.has_default for name, decl in loaded.spec.vars.items()} == {"z": False, "a": True}
    assert not loaded.spec.is_1_0
    return loaded.spec.agent


def test_blocks_are_typed_and_whole_numbers_are_integers(agent: model.Agent) -> None:
    assert agent.model is not None
    assert agent.approval_notifier is not None
    assert (agent.model.api_key_name, agent.model.timeout_ms) == ("OPENAI_KEY", 30_000)
    assert type(agent.model.timeout_ms) is int
    assert agent.approval_notifier.token_name == "SLACK"
    assert agent.trigger == WebhookTrigger()
    assert agent.knowledge_base == (model.KnowledgeSource(type="url", source="https://example.net"),)


def test_an_http_tool_keeps_the_order_written_and_drops_unknown_keys(agent: model.Agent) -> None:
    tool = agent.tool("find")

    assert isinstance(tool, model.HttpTool)
    assert list(tool.headers) == ["Z", "A"]
    assert tool.body == model.Body(kind="json", json_={"b": 1, "a": [2.0]})
    assert list(tool.body.json_) == ["b", "a"]
    assert tool.retry == model.Retry(max=2, backoff="exponential", base_ms=500, max_delay_ms=30_000)
    assert (tool.mode, tool.requires_approval, tool.extract) == ("json", True, None)
    assert not hasattr(tool, "colour")


def test_failure_rules_know_which_condition_was_written(agent: model.Agent) -> None:
    tool = agent.tools[0]

    assert isinstance(tool, model.HttpTool)
    assert [rule.as_json() for rule in tool.failure_when] == [
        {"path": "a", "equals": None, "retryable": False},
        {"path": "b", "exists": False, "message_path": "c", "retryable": True},
    ]


def test_every_kind_of_tool_and_step_has_its_class(agent: model.Agent) -> None:
    assert [type(tool) for tool in agent.tools] == [
        model.HttpTool, model.SlackTool, model.GmailTool, model.ComponentTool, model.HttpTool,
    ]  # fmt: skip
    assert [type(step) for step in agent.workflow] == [
        model.ActionStep, model.ConditionStep, model.ToolStep, model.ApprovalStep,
    ]  # fmt: skip
    assert agent.tools[4].requires_approval is None


def test_an_output_schema_stays_as_written(agent: model.Agent) -> None:
    step = agent.workflow[0]

    assert isinstance(step, model.ActionStep)
    assert step.inputs == ("x", "y")
    assert step.output_schema == {"type": "object", "properties": {"n": {"type": "integer", "default": 2.0}}}
    assert type(step.output_schema["properties"]["n"]["default"]) is float


def test_a_loaded_spec_cannot_be_changed(agent: model.Agent) -> None:
    with pytest.raises(pydantic.ValidationError):
        agent.name = "other"


def test_it_is_imported_without_django_and_leaves_the_recursion_limit_alone() -> None:
    code = (
        "import sys\n"
        "sys.modules['django'] = None\n"
        "limit = sys.getrecursionlimit()\n"
        "from workflows.spec import load, spans, expressions\n"
        "assert load.load('version: \"1.1\"').errors\n"
        "assert sys.getrecursionlimit() == limit\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
