"""What a provider is asked, parameter by parameter: only what every model of it in service accepts."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.adapters.questions import KEY, connect, question, spec_with
from tests.fakes_models import FakeModels
from workflows.adapters.models import ModelClient, client_for
from workflows.engine.effects import ModelFailed, ModelText

SHAPE = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}
MESSAGES = [
    {"role": "system", "content": question().system},
    {"role": "user", "content": question().prompt},
]


def body_of(provider: str, models: FakeModels, settings: Any, **changes: Any) -> Any:
    models.answers["draft"] = "x"
    connect(provider, models, settings).ask(question(**changes))
    return models.requests[0].body


@pytest.mark.parametrize("provider", ["openai", "openrouter", "ollama"])
def test_a_chat_completion_is_asked_for_with_no_limit_of_tokens(
    provider: str, models: FakeModels, settings: Any
) -> None:
    """`max_tokens` is refused by newer models, `max_completion_tokens` by older and local ones."""
    assert body_of(provider, models, settings) == {"model": "test-model", "messages": MESSAGES}


@pytest.mark.parametrize("provider", ["openai", "openrouter", "ollama"])
def test_a_chat_completion_of_a_structure_calls_no_function(provider: str, models: FakeModels, settings: Any) -> None:
    body = body_of(provider, models, settings, want="object", structure=SHAPE)
    schema = {"name": "answer", "schema": SHAPE, "strict": False}
    assert body == {
        "model": "test-model",
        "messages": MESSAGES,
        "response_format": {"type": "json_schema", "json_schema": schema},
    }


def test_a_message_is_asked_for_with_its_limit(models: FakeModels, settings: Any) -> None:
    assert body_of("anthropic", models, settings) == {
        "model": "test-model",
        "max_tokens": 16000,
        "system": question().system,
        "messages": MESSAGES[1:],
    }


def test_a_message_of_a_structure_offers_a_tool_and_forces_none(models: FakeModels, settings: Any) -> None:
    """Models that always think refuse a call that is forced."""
    body = body_of("anthropic", models, settings, want="object", structure=SHAPE)
    assert body["tool_choice"] == {"type": "auto"}
    (tool,) = body["tools"]
    assert (tool["name"], tool["input_schema"]) == ("answer", SHAPE)


@pytest.mark.parametrize("temperature", [0, 0.7, 2])
def test_a_temperature_is_sent_only_when_the_step_has_one(
    client: ModelClient, models: FakeModels, temperature: float
) -> None:
    models.answers["draft"] = "x"
    client.ask(question(temperature=temperature))
    client.ask(question())
    assert models.requests[0].body["temperature"] == temperature
    assert "temperature" not in models.requests[1].body


def test_a_refused_parameter_is_told_in_the_providers_words(client: ModelClient, models: FakeModels) -> None:
    words = "Unsupported value: 'temperature' does not support 0.5 with this model."
    models.answers["draft"] = {"status": 400, "json": {"error": {"message": words}}}
    outcome = client.ask(question(temperature=0.5))
    assert isinstance(outcome, ModelFailed)
    assert words in outcome.error
    assert "test-model" in outcome.error


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter"])
@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}\r\nX-Injected: 1", f"{KEY}\0"])
def test_a_key_with_a_line_break_is_named_by_its_variable_and_not_sent(
    provider: str, models: FakeModels, settings: Any, key: str
) -> None:
    connect(provider, models, settings)
    spec = spec_with({"provider": provider, "name": "m", "api_key": "${MODEL_KEY}"})
    outcome = client_for(spec, {"MODEL_KEY": key}).ask(question())
    assert isinstance(outcome, ModelFailed)
    assert "MODEL_KEY" in outcome.error
    assert KEY not in outcome.error
    assert models.requests == []


@pytest.mark.parametrize("base", ["localhost:11434", "ftp://127.0.0.1/"])
def test_a_base_url_that_is_none_says_where_to_correct_it(base: str) -> None:
    outcome = client_for(spec_with({"provider": "ollama", "name": "m", "base_url": base}), {}).ask(question())
    assert isinstance(outcome, ModelFailed)
    for fact in (base.rstrip("/"), "base_url", "URL"):
        assert fact in outcome.error


def test_a_wrong_setting_is_named(settings: Any) -> None:
    settings.KAMPONG_OPENAI_API_URL = "api.openai.example/v1"
    spec = spec_with({"provider": "openai", "name": "m", "api_key": "${MODEL_KEY}"})
    outcome = client_for(spec, {"MODEL_KEY": KEY}).ask(question())
    assert isinstance(outcome, ModelFailed)
    assert "KAMPONG_OPENAI_API_URL" in outcome.error


def test_half_a_surrogate_pair_is_a_failure_and_no_crash(client: ModelClient, models: FakeModels) -> None:
    outcome = client.ask(question(prompt="\ud800"))
    assert isinstance(outcome, ModelFailed)
    assert "surrogate" in outcome.error
    assert models.requests == []


def test_a_metadata_address_is_not_called_even_for_a_local_model() -> None:
    spec = spec_with({"provider": "ollama", "name": "m", "base_url": "http://169.254.169.254"})
    outcome = client_for(spec, {}).ask(question())
    assert isinstance(outcome, ModelFailed)
    assert "KAMPONG_PRIVATE_ADDRESSES" in outcome.error


def test_a_base_url_of_a_spec_goes_where_tools_may_go_and_the_usual_place_is_the_operators(
    models: FakeModels, settings: Any
) -> None:
    settings.KAMPONG_PRIVATE_ADDRESSES = []
    block = {"provider": "ollama", "name": "m", "base_url": models.url}
    outcome = client_for(spec_with(block), {}).ask(question())
    assert isinstance(outcome, ModelFailed)
    assert "KAMPONG_PRIVATE_ADDRESSES" in outcome.error
    assert models.requests == []
    settings.KAMPONG_PRIVATE_ADDRESSES = [models.url.removeprefix("http://")]
    models.answers["draft"] = "x"
    assert client_for(spec_with(block), {}).ask(question()) == ModelText(text="x")


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter"])
def test_an_address_that_the_operator_set_needs_no_entry(provider: str, models: FakeModels, settings: Any) -> None:
    settings.KAMPONG_PRIVATE_ADDRESSES = []
    models.answers["draft"] = "x"
    assert connect(provider, models, settings).ask(question()) == ModelText(text="x")


@pytest.mark.parametrize("answer", [{"status": 401, "text": KEY}, {"status": 500, "text": KEY}, {"drop": True}, "fine"])
def test_the_key_is_logged_at_no_level(
    client: ModelClient, models: FakeModels, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    models.answers["draft"] = answer
    caplog.set_level(logging.DEBUG)
    client.ask(question())
    assert KEY not in caplog.text
