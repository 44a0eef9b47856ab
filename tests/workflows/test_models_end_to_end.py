"""Whole runs with each provider against a server of its wire format (engine semantics 4, 5, 6)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes_models import Asked, FakeModels
from workflows.advance import world_for
from workflows.engine.effects import Decision, Pause
from workflows.engine.situation import Situation
from workflows.memory_run import State, decision_for, run_in_memory
from workflows.spec.load import load

KEY = "sk-hummingbird"
HEAD = """\
version: "{version}"
agent:
  id: clerk
  name: Clerk
  role: "Clerk  of {{{{ input }}}}"
  goal: Judge é.
  model: {model}
  guardrails: {{confidence_threshold: 0.5, fallback_action: escalate_to_human}}
  workflow:
"""
GATED = """\
    - {step: draft, action: write, query: "Greet {{ trigger.name }} in {{ [1, 2.50] }}"}
    - {step: weigh, action: weigh it, confidence_gate: true, inputs: [amount, name]}
    - {step: after, action: close, query: "{{ weigh.confidence }}{{ '' }}", instructions: "Say {{ input }}.\\n"}
"""
STRUCTURED = """\
    - step: judge
      action: assess
      temperature: 0
      model: small-model
      confidence_gate: true
      output_schema:
        type: object
        required: [verdict, confidence]
        properties:
          verdict: {type: string, enum: [keep, return], description: What to do, pattern: "^(?:k|r)", minLength: 2}
          confidence: {type: number, minimum: 0, maximum: 1}
          note: {type: string, default: none}
          rows:
            type: array
            items: {type: object, required: [n], properties: {n: {type: integer, minimum: 1}}}
"""
PRINTED = """\
{
  "type": "object",
  "required": [
    "verdict",
    "confidence"
  ],
  "properties": {
    "verdict": {
      "type": "string",
      "enum": [
        "keep",
        "return"
      ],
      "description": "What to do",
      "pattern": "^(?:k|r)",
      "minLength": 2
    },
    "confidence": {
      "type": "number",
      "minimum": 0,
      "maximum": 1
    },
    "note": {
      "type": "string",
      "default": "none"
    },
    "rows": {
      "type": "array",
      "items": {
        "type": "object",
        "required": [
          "n"
        ],
        "properties": {
          "n": {
            "type": "integer",
            "minimum": 1
          }
        }
      }
    }
  }
}"""


# runs in memory: what is said to a model and made of its answer
pytestmark = pytest.mark.everyday("sqlite")


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


@pytest.fixture(params=["anthropic", "openai", "openrouter", "ollama"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(provider: str, models: FakeModels, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    settings.KAMPONG_ANTHROPIC_API_URL = models.anthropic_url
    settings.KAMPONG_OPENAI_API_URL = models.openai_url
    settings.KAMPONG_OPENROUTER_API_URL = models.openrouter_url
    monkeypatch.setenv("MODEL_KEY", KEY)

    def running(steps: str, input: str = "go", *, version: str = "1.1", timeout: str = "", approve: bool = True) -> Any:
        where = f"base_url: '{models.url}'" if provider == "ollama" else 'api_key: "${MODEL_KEY}"'
        block = f"{{provider: {provider}, name: test-model, {where}{timeout}}}"
        loaded = load(HEAD.format(version=version, model=block) + steps)
        assert loaded.spec is not None, loaded.errors

        def ask(pause: Pause) -> Decision:
            return decision_for(pause, approved=approve, reason=None, by="alice")

        world = world_for(loaded.spec)
        state = run_in_memory(loaded.spec, Situation(input=input), world, ask=ask, listener=lambda event, now: None)
        assert KEY not in str(state)
        return state

    return running


def asked(models: FakeModels, step: str) -> list[Asked]:
    return [question for question in models.requests if question.step == step]


def test_prompts_to_the_letter(run: Any, models: FakeModels) -> None:
    models.answers |= {"draft": "Dear é", "weigh": {"result": {"ok": True}, "confidence": 0.5}, "after": "done"}
    state: State = run(GATED, '{"name": "Lim", "amount": 3.0}')
    assert state["status"] == "completed", state
    first, second, third = models.requests
    assert first.system == "Role: Clerk  of {{ input }}\nGoal: Judge é."
    assert first.prompt == (
        'User input: {"name": "Lim", "amount": 3.0}\nStep: draft\nAction: write\nQuery: Greet Lim in [1,2.5]'
    )
    assert second.prompt == (
        'User input: {"name": "Lim", "amount": 3.0}\nStep: weigh\nAction: weigh it\nRelevant fields: amount, name\n'
        'Prior step outputs: {"draft":{"text":"Dear é"}}\n'
        "Answer with only a JSON object with two fields: `result` (an object) and `confidence` (a number from 0 to 1)."
    )
    assert third.system == "Say {{ input }}.\n"
    assert third.prompt == (
        'User input: {"name": "Lim", "amount": 3.0}\nStep: after\nAction: close\nQuery: 0.5\n'
        'Prior step outputs: {"draft":{"text":"Dear é"},"weigh":{"ok":true,"confidence":0.5}}'
    )
    assert [question.structured for question in models.requests] == [False, True, False]


def test_a_1_0_gate_keeps_its_confidence_to_itself(run: Any, models: FakeModels) -> None:
    models.answers["weigh"] = {"result": {"ok": True}, "confidence": 0.9}
    state = run("    - {step: weigh, action: weigh it, confidence_gate: true}\n", version="1.0")
    assert state["finalOutput"] == {"weigh": {"ok": True}}
    assert state["trace"] == [{"step": "weigh", "status": "completed", "output": {"ok": True}, "confidence": 0.9}]


@pytest.mark.parametrize(("confidence", "pauses"), [(0.49, True), (0.5, False), (1, False), (0, True)])
def test_the_guardrail_fires_strictly_below_its_threshold(
    run: Any, models: FakeModels, confidence: float, pauses: bool
) -> None:
    models.answers["weigh"] = {"result": {}, "confidence": confidence}
    state = run("    - {step: weigh, action: weigh it, confidence_gate: true}\n", approve=False)
    assert state["status"] == ("rejected" if pauses else "completed")
    assert models.count("weigh") == 1


def test_a_structured_answer_is_asked_for_again_once_with_its_problems(run: Any, models: FakeModels) -> None:
    wrong = {"verdict": "drop", "rows": [{"n": 1}, {"n": 0.5}, {}], "confidence": "high"}
    models.answers["judge"] = [{"object": wrong}, {"object": {"verdict": "keep", "confidence": 0.75, "more": None}}]
    state = run(STRUCTURED)
    assert state["finalOutput"] == {"judge": {"verdict": "keep", "confidence": 0.75, "more": None, "note": "none"}}
    assert state["trace"][0]["confidence"] == 0.75
    first, second = asked(models, "judge")
    asking = "Answer with only a JSON object that matches this JSON Schema:\n" + PRINTED
    assert first.prompt == f"User input: go\nStep: judge\nAction: assess\n{asking}"
    assert second.prompt == (
        f"{first.prompt}\n\nThe previous answer did not match the schema: "
        "output.verdict: must match the pattern ^(?:k|r); output.verdict: must be one of keep, return; "
        "output.confidence: must be a number; output.rows[1].n: must be a whole number (integer); "
        "output.rows[2].n: is required\n"
        'Previous answer: {"verdict":"drop","rows":[{"n":1},{"n":0.5},{}],"confidence":"high"}\n'
        "Answer again with only a JSON object that matches the schema."
    )
    for question in (first, second):
        assert (question.body["model"], question.body["temperature"]) == ("small-model", 0)
        assert shape_of(question) == {
            "type": "object",
            "properties": {
                "verdict": {"type": "string", "description": "What to do", "enum": ["keep", "return"]},
                "confidence": {"type": "number"},
                "note": {"type": "string"},
                "rows": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
                },
            },
            "required": ["verdict", "confidence"],
        }


def shape_of(question: Asked) -> Any:
    if "tools" in question.body:
        return question.body["tools"][0]["input_schema"]
    return question.body["response_format"]["json_schema"]["schema"]


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ({"object": {"verdict": "keep"}}, "output.confidence: is required"),
        ({"object": {"verdict": "keep", "confidence": 2}}, "output.confidence: must be at most 1"),
        ({"object": [1]}, "output: must be an object"),
        ({"malformed": {"raw": "{"}}, "output: the answer is not JSON"),
        ({"truncated": '{"verdict": '}, "cut off"),
        ("", "output: must be an object"),
    ],
)
def test_a_second_wrong_answer_fails_the_step_with_its_own_problems(
    run: Any, models: FakeModels, second: Any, problem: str
) -> None:
    models.answers["judge"] = [{"object": {"verdict": 1}}, second]
    state = run(STRUCTURED)
    assert state["status"] == "failed"
    assert "after 1 retry" in state["error"]
    assert problem in state["error"]
    assert "output.verdict: must be a string" not in state["error"]
    assert models.count("judge") == 2


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 401, "json": {"error": {"message": f"bad {KEY}"}}},
        {"status": 429, "json": {"error": {"message": "slow down"}}},
        {"status": 500, "text": "<html>"},
        {"status": 529, "json": {"error": {"message": "busy"}}},
        {"status": 302, "text": ""},
        {"status": 200, "text": "<html>"},
        {"drop": True},
    ],
)
def test_a_failed_call_fails_the_step_after_one_request(
    run: Any, provider: str, models: FakeModels, answer: Any
) -> None:
    models.answers["judge"] = answer
    state = run(STRUCTURED)
    assert state["status"] == "failed"
    assert provider in state["error"].lower()
    assert (models.count("judge"), len(models.requests)) == (1, 1)


def test_a_number_beyond_all_bounds_is_a_problem_and_no_crash(run: Any, models: FakeModels) -> None:
    huge = {"verdict": "keep", "confidence": 10**400}
    models.answers["judge"] = [{"object": huge}, {"object": huge | {"confidence": 1}}]
    assert run(STRUCTURED)["status"] == "completed"
    assert "output.confidence: must be a number" in models.requests[1].prompt


def test_a_pattern_bomb_costs_its_own_step_an_error(run: Any, models: FakeModels) -> None:
    models.answers["judge"] = {"object": {"code": "a" * 60, "confidence": 1}}
    schema = 'type: object, properties: {code: {type: string, pattern: "^(a+)+!$"}}'
    started = time.monotonic()
    state = run(f"    - {{step: judge, action: assess, output_schema: {{{schema}}}}}\n")
    assert time.monotonic() - started < 30
    assert state["status"] == "failed"
    assert "^(a+)+!$" in state["error"]


def test_the_specs_limit_holds_over_the_whole_answer(run: Any, provider: str, models: FakeModels) -> None:
    models.answers["judge"] = {"hang": 30}
    started = time.monotonic()
    state = run(STRUCTURED, timeout=", timeout_ms: 1000")
    assert time.monotonic() - started < 20
    for fact in (provider, "1000 ms", "timeout_ms", "--timeout"):
        assert fact in state["error"]
    assert models.count("judge") == 1
