"""Each provider against a real server of its wire format: one request a question, and what answers become."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.questions import KEY, question
from tests.fakes_models import FakeModels
from workflows.adapters.models import ModelClient
from workflows.engine.effects import ModelFailed, ModelGate, ModelMalformed, ModelObject, ModelText
from workflows.engine.values import NOTHING

PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "openrouter": "/api/v1/chat/completions",
    "ollama": "/v1/chat/completions",
}
SHAPE = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}


def test_a_text_answer_and_exactly_one_request(client: ModelClient, provider: str, models: FakeModels) -> None:
    models.answers["draft"] = "Dear Ms Lim, é"
    assert client.ask(question()) == ModelText(text="Dear Ms Lim, é")
    (asked,) = models.requests
    assert asked.path == PATHS[provider]
    assert (asked.system, asked.prompt) == (question().system, question().prompt)
    assert asked.body["model"] == "test-model"
    assert "temperature" not in asked.body
    assert not asked.structured


def test_the_key_travels_as_the_provider_wants_it(client: ModelClient, provider: str, models: FakeModels) -> None:
    models.answers["draft"] = "x"
    client.ask(question())
    headers = models.requests[0].headers
    if provider == "anthropic":
        assert headers["x-api-key"] == KEY
        assert headers["anthropic-version"]
    elif provider == "ollama":
        assert "authorization" not in headers
    else:
        assert headers["authorization"] == f"Bearer {KEY}"


def test_a_step_may_name_its_own_model_and_temperature(client: ModelClient, models: FakeModels) -> None:
    models.answers["draft"] = "x"
    client.ask(question(model="other-model", temperature=0))
    assert (models.requests[0].body["model"], models.requests[0].body["temperature"]) == ("other-model", 0)


def test_a_gate_answer_has_result_and_confidence(client: ModelClient, models: FakeModels) -> None:
    models.answers["draft"] = {"result": {"ok": True}, "confidence": 0.25}
    assert client.ask(question(want="gate")) == ModelGate(result={"ok": True}, confidence=0.25)
    assert models.requests[0].structured


@pytest.mark.parametrize("confidence", ["high", None, True, 1.5, -0.1, [1]])
def test_a_confidence_that_is_none_never_passes_for_certainty(
    client: ModelClient, models: FakeModels, confidence: Any
) -> None:
    models.answers["draft"] = {"object": {"result": {}, "confidence": confidence}}
    outcome = client.ask(question(want="gate"))
    assert isinstance(outcome, ModelMalformed)
    assert "output.confidence" in outcome.problems[0]


def test_a_gate_answer_without_a_result_is_malformed(client: ModelClient, models: FakeModels) -> None:
    models.answers["draft"] = {"object": {"confidence": 1}}
    outcome = client.ask(question(want="gate"))
    assert isinstance(outcome, ModelMalformed)
    assert outcome.raw == {"confidence": 1}


def test_an_object_is_handed_on_as_it_came(client: ModelClient, provider: str, models: FakeModels) -> None:
    models.answers["draft"] = {"object": {"verdict": 7, "extra": [1.5, None]}}
    assert client.ask(question(want="object", structure=SHAPE)) == ModelObject(
        value={"verdict": 7, "extra": [1.5, None]}
    )
    assert SHAPE in wanted_shapes(models.requests[0].body)


def wanted_shapes(body: Any) -> list[Any]:
    tools = body.get("tools", [])
    shapes = [tool.get("input_schema") or tool["function"]["parameters"] for tool in tools]
    return shapes + ([body["response_format"]["json_schema"]["schema"]] if "response_format" in body else [])


@pytest.mark.parametrize("text", ['{"verdict": "keep"}', '```json\n{"verdict": "keep"}\n```', ' {"verdict": "keep"}\n'])
def test_an_object_given_as_text_is_read(client: ModelClient, models: FakeModels, text: str) -> None:
    models.answers["draft"] = text
    assert client.ask(question(want="object", structure=SHAPE)) == ModelObject(value={"verdict": "keep"})


@pytest.mark.parametrize("raw", ['{"verdict": ', "I would keep it.", '{"n": NaN}'])
def test_an_answer_that_is_no_json_is_malformed_with_what_was_said(
    client: ModelClient, models: FakeModels, raw: str
) -> None:
    models.answers["draft"] = {"malformed": {"problems": [], "raw": raw}}
    outcome = client.ask(question(want="object", structure=SHAPE))
    assert isinstance(outcome, ModelMalformed)
    assert outcome.raw == raw
    assert outcome.problems[0].startswith("output")
    assert models.count("draft") == 1


def test_no_answer_at_all_is_nothing(client: ModelClient, models: FakeModels) -> None:
    models.answers["draft"] = ""
    assert client.ask(question(want="object", structure=SHAPE)) == ModelObject(value=NOTHING)
    outcome = client.ask(question())
    assert isinstance(outcome, ModelFailed)
    assert "empty" in outcome.error


def test_a_truncated_answer_does_not_pass_for_a_whole_one(client: ModelClient, models: FakeModels) -> None:
    models.answers["draft"] = {"truncated": '{"verdict": "ke'}
    text = client.ask(question())
    assert isinstance(text, ModelFailed)
    assert "cut off" in text.error
    outcome = client.ask(question(want="object", structure=SHAPE))
    assert isinstance(outcome, ModelMalformed)
    assert "cut off" in outcome.problems[0]
