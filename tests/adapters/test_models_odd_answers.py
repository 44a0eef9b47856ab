"""Answers that are valid HTTP and say something else than what was asked for: refusals, errors inside, wrong forms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.questions import KEY, connect, question
from tests.fakes_models import FakeModels
from workflows.adapters.models import ModelClient
from workflows.engine.effects import ModelFailed, ModelGate, ModelMalformed, ModelObject, ModelText
from workflows.engine.values import NOTHING

SHAPE = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}
KEEP = {"verdict": "keep"}
CHAT = ["openai", "openrouter", "ollama"]


def chat(message: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish, **more}
    return {"status": 200, "json": {"choices": [choice]}}


def message(*blocks: Any, stop: Any = "end_turn") -> dict[str, Any]:
    return {"status": 200, "json": {"type": "message", "content": list(blocks), "stop_reason": stop}}


def text(said: Any) -> dict[str, Any]:
    return {"type": "text", "text": said}


def asked(provider: str, models: FakeModels, settings: Any, answer: Any, **changes: Any) -> Any:
    models.answers["draft"] = answer
    outcome = connect(provider, models, settings).ask(question(**changes))
    assert models.count("draft") == 1
    assert provider == "ollama" or KEY not in str(outcome)
    return outcome


def failed(*given: Any, **changes: Any) -> str:
    outcome = asked(*given, **changes)
    assert isinstance(outcome, ModelFailed), outcome
    return outcome.error


# Chat completions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", CHAT)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (chat({"content": None, "refusal": f"I cannot help with {KEY}."}), "declined to answer: I cannot help"),
        (chat({"content": "half"}, "content_filter"), "content filter"),
        (chat({"content": "half"}, "length"), "cut off"),
        (chat({"content": ""}), "empty"),
        (chat({"content": None}), "empty"),
        (chat({}), "empty"),
        (chat({"content": "x"}, "error"), "the provider failed"),
        (chat({"content": ""}, "error", error={"code": 502, "message": f"upstream {KEY} died"}), "upstream"),
        ({"status": 200, "json": {"error": {"code": 429, "message": f"slow down {KEY}"}}}, "slow down"),
        ({"status": 200, "json": {"error": "model is loading"}}, "model is loading"),
        ({"status": 200, "json": {"choices": []}}, "form of a chat completion"),
        ({"status": 200, "json": {"choices": None}}, "form of a chat completion"),
        ({"status": 200, "json": {"choices": ["x"]}}, "form of a chat completion"),
        (chat(None), "form of a chat completion"),
        (chat("text"), "form of a chat completion"),
        (chat({"content": 7}), "form of a chat completion"),
        (chat({"content": {"a": 1}}), "form of a chat completion"),
        (chat({"content": [{"type": "text", "text": 7}]}), "form of a chat completion"),
        (chat({"content": [7]}), "form of a chat completion"),
        (chat({"content": "", "tool_calls": [{}]}), "form of a chat completion"),
        (chat({"content": None, "tool_calls": [{"function": {"name": "x", "arguments": "{}"}}]}), "something else"),
        ({"status": 200, "text": '{"choices": "\\u0000"}'}, "NUL"),
        ({"status": 200, "text": "<html>busy</html>"}, "cannot be read"),
    ],
)
def test_a_chat_completion_without_a_usable_text_fails_clearly(
    provider: str, models: FakeModels, settings: Any, answer: Any, words: str
) -> None:
    error = failed(provider, models, settings, answer)
    assert provider in error
    assert words in error


@pytest.mark.parametrize("provider", CHAT)
def test_a_text_in_parts_is_joined(provider: str, models: FakeModels, settings: Any) -> None:
    parts = [text("Dear "), {"type": "reasoning", "reasoning": "hm"}, text("Ms Lim")]
    assert asked(provider, models, settings, chat({"content": parts})) == ModelText(text="Dear Ms Lim")


@pytest.mark.parametrize("provider", CHAT)
@pytest.mark.parametrize("arguments", [json.dumps(KEEP), KEEP])
@pytest.mark.parametrize("name", ["answer", "json", "functions.answer"])
def test_a_server_that_calls_a_function_unasked_is_understood(
    provider: str, models: FakeModels, settings: Any, arguments: Any, name: str
) -> None:
    called = {"content": "Let me see.", "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}
    outcome = asked(provider, models, settings, chat(called, "tool_calls"), want="object", structure=SHAPE)
    assert outcome == ModelObject(value=KEEP)


@pytest.mark.parametrize("provider", CHAT)
def test_an_answer_that_thinking_used_up_is_cut_off(provider: str, models: FakeModels, settings: Any) -> None:
    outcome = asked(provider, models, settings, chat({"content": ""}, "length"), want="object", structure=SHAPE)
    assert isinstance(outcome, ModelMalformed)
    assert "cut off" in outcome.problems[0]
    assert outcome.raw is NOTHING


# Messages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (message(text("half"), stop="refusal"), "declined"),
        (message(stop="refusal"), "declined"),
        (message(text("half"), stop="max_tokens"), "cut off"),
        (message(text("half"), stop="model_context_window_exceeded"), "cut off"),
        (message(), "empty"),
        (message({"type": "thinking", "thinking": "hm", "signature": "x"}), "empty"),
        (message({"type": "tool_use", "name": "answer", "input": {}}), "something else"),
        (message(text(7)), "form of a message"),
        (message("x"), "form of a message"),
        (message({"text": "x"}), "form of a message"),
        ({"status": 200, "json": {"content": "x"}}, "form of a message"),
        ({"status": 200, "json": ["content"]}, "form of a message"),
        ({"status": 529, "json": {"type": "error", "error": {"message": f"Overloaded {KEY}"}}}, "Overloaded"),
    ],
)
def test_a_message_without_a_usable_text_fails_clearly(
    models: FakeModels, settings: Any, answer: Any, words: str
) -> None:
    error = failed("anthropic", models, settings, answer)
    assert "anthropic" in error
    assert words in error


@pytest.mark.parametrize("name", ["answer", "other"])
def test_a_tool_call_with_thinking_and_text_around_it_is_the_answer(
    models: FakeModels, settings: Any, name: str
) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        text("I decided: {}."),
        {"type": "redacted_thinking", "data": "x"},
    ]
    called = message(*blocks, {"type": "tool_use", "id": "t", "name": name, "input": KEEP}, stop="tool_use")
    assert asked("anthropic", models, settings, called, want="object", structure=SHAPE) == ModelObject(value=KEEP)


def test_a_tool_call_that_was_cut_off_is_not_believed(models: FakeModels, settings: Any) -> None:
    called = message({"type": "tool_use", "name": "answer", "input": KEEP}, stop="max_tokens")
    outcome = asked("anthropic", models, settings, called, want="object", structure=SHAPE)
    assert isinstance(outcome, ModelMalformed)
    assert "cut off" in outcome.problems[0]


# An object in a text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        '{"verdict": "keep"}',
        '\n{"verdict": "keep"}\n',
        '```json\n{"verdict": "keep"}\n```',
        '```\n{"verdict": "keep"}\n```',
        'Here it is:\n\n```json\n{"verdict": "keep"}\n```\nShall I go on?',
        'Here it is: {"verdict": "keep"}',
        '{"verdict": "keep"}\nI hope that helps.',
    ],
)
def test_one_object_with_words_around_it_is_read(client: ModelClient, models: FakeModels, said: str) -> None:
    models.answers["draft"] = said
    assert client.ask(question(want="object", structure=SHAPE)) == ModelObject(value=KEEP)


@pytest.mark.parametrize(
    "said",
    [
        'Either {"verdict": "keep"} or {"verdict": "drop"}.',
        '```json\n{"verdict": "keep"}\n```\nor\n```json\n{"verdict": "drop"}\n```',
        'Here: {"verdict": "keep"',
        "none {at all}",
        "}{",
    ],
)
def test_a_text_with_two_objects_or_none_is_not_guessed_at(client: ModelClient, models: FakeModels, said: str) -> None:
    models.answers["draft"] = said
    outcome = client.ask(question(want="object", structure=SHAPE))
    assert isinstance(outcome, ModelMalformed)
    assert outcome.raw == said


@pytest.mark.parametrize("value", [[KEEP], "text", 7, None, [{"verdict": 1}, KEEP]])
def test_another_json_value_is_handed_on_to_be_judged(client: ModelClient, models: FakeModels, value: Any) -> None:
    models.answers["draft"] = json.dumps(value)
    assert client.ask(question(want="object", structure=SHAPE)) == ModelObject(value=value)


def test_a_gate_is_read_from_a_text_too(client: ModelClient, models: FakeModels) -> None:
    models.answers["draft"] = 'Sure.\n{"result": {"ok": true}, "confidence": 0.4}'
    assert client.ask(question(want="gate")) == ModelGate(result={"ok": True}, confidence=0.4)
