"""The wire formats of model providers: a question as JSON, an answer read back.

Structure is asked for as the one tool that the model must call; a local server gets the JSON Schema as its response
format, which works for every local model, tools or not. What comes back is parsed and handed on unvalidated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from workflows.engine import jsontext, prompts
from workflows.engine.effects import AskModel, ModelGate, ModelMalformed, ModelObject, ModelText
from workflows.engine.values import NOTHING, Json, MaybeJson

Want: TypeAlias = Literal["text", "gate", "object"]
Said: TypeAlias = ModelText | ModelGate | ModelObject | ModelMalformed

TOOL: Final = "answer"
#: Anthropic wants a limit with each question. The largest that all its models in use accept.
MAX_TOKENS: Final = 8192
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n\s*```\s*", re.DOTALL)


class Unusable(Exception):
    """The answer is complete and says nothing that a step could use; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """One provider's format. `read` raises Unusable."""

    question: Callable[[AskModel, str], Json]
    credentials: Callable[[str | None], list[tuple[str, str]]]
    read: Callable[[Json, Want], Said]


def _structure(effect: AskModel) -> Json:
    if effect.structure is not None:
        return effect.structure
    return prompts.gate_structure() if effect.want == "gate" else {"type": "object"}


def _temperature(effect: AskModel) -> dict[str, Json]:
    return {} if effect.temperature is None else {"temperature": effect.temperature}


# Chat completions: openai, openrouter, ollama ------------------------------------------------------------------


def _chat(effect: AskModel, model: str) -> dict[str, Json]:
    messages = [{"role": "system", "content": effect.system}, {"role": "user", "content": effect.prompt}]
    return {"model": model, "messages": messages, **_temperature(effect)}


def _chat_with_tool(effect: AskModel, model: str) -> Json:
    if effect.want == "text":
        return _chat(effect, model)
    function = {"name": TOOL, "description": "Gives the answer.", "parameters": _structure(effect)}
    return {
        **_chat(effect, model),
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": TOOL}},
    }


def _chat_with_schema(effect: AskModel, model: str) -> Json:
    if effect.want == "text":
        return _chat(effect, model)
    wanted = {"name": TOOL, "schema": _structure(effect)}
    return {**_chat(effect, model), "response_format": {"type": "json_schema", "json_schema": wanted}}


def _bearer(key: str | None) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {key}")] if key else []


def _read_chat(said: Json, want: Want) -> Said:
    try:
        choice = said["choices"][0]
        message = choice["message"]
        calls = message.get("tool_calls") or []
        text = _joined(message.get("content"))
        arguments = calls[0]["function"]["arguments"] if calls else None
    except (KeyError, IndexError, TypeError, AttributeError) as problem:
        raise Unusable("it does not have the form of a chat completion") from problem
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        raise Unusable("the model declined to answer")
    if choice.get("finish_reason") == "content_filter":
        raise Unusable("the provider's content filter held it back")
    cut = choice.get("finish_reason") == "length"
    if arguments is None:
        return _from_text(text, want, cut)
    if isinstance(arguments, str):
        return _from_json_text(arguments, want, cut)
    return _structured(arguments, want)


def _joined(content: Json) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    return content or ""


# Messages: anthropic -------------------------------------------------------------------------------------------


def _messages(effect: AskModel, model: str) -> Json:
    body: dict[str, Json] = {
        "model": model,
        "max_tokens": MAX_TOKENS,
        "system": effect.system,
        "messages": [{"role": "user", "content": effect.prompt}],
        **_temperature(effect),
    }
    if effect.want != "text":
        tool = {"name": TOOL, "description": "Gives the answer.", "input_schema": _structure(effect)}
        body |= {"tools": [tool], "tool_choice": {"type": "tool", "name": TOOL}}
    return body


def _api_key(key: str | None) -> list[tuple[str, str]]:
    return [("x-api-key", key or ""), ("anthropic-version", "2023-06-01")]


def _read_messages(said: Json, want: Want) -> Said:
    try:
        blocks = said["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        inputs = [block["input"] for block in blocks if block["type"] == "tool_use"]
    except (KeyError, TypeError) as problem:
        raise Unusable("it does not have the form of a message") from problem
    if said.get("stop_reason") == "refusal":
        raise Unusable("the model declined to answer")
    cut = said.get("stop_reason") == "max_tokens"
    if not inputs:
        return _from_text(text, want, cut)
    if cut:
        return ModelMalformed(problems=(_CUT,), raw=inputs[0])
    return _structured(inputs[0], want)


# What was said -------------------------------------------------------------------------------------------------

_CUT: Final = "output: the answer was cut off at the provider's length limit"


def _from_text(text: str, want: Want, cut: bool) -> Said:
    if want == "text":
        if cut:
            raise Unusable("it was cut off at the provider's length limit")
        if not text:
            raise Unusable("it is empty")
        return ModelText(text=text)
    if not text.strip():
        return ModelObject(value=NOTHING) if want == "object" else _malformed("there was no answer", NOTHING)
    fenced = _FENCED.fullmatch(text)
    return _from_json_text(fenced.group(1) if fenced else text, want, cut)


def _from_json_text(text: str, want: Want, cut: bool) -> Said:
    try:
        value = jsontext.loads(text)
    except ValueError as problem:
        return ModelMalformed(problems=(_CUT,), raw=text) if cut else _malformed(f"the answer is {problem}", text)
    return _structured(value, want)


def _structured(value: Json, want: Want) -> Said:
    if want == "text":
        raise Unusable("text was asked for, and it is something else")
    return ModelObject(value=value) if want == "object" else _gate(value)


def _gate(value: Json) -> ModelGate | ModelMalformed:
    """A gate's answer. A confidence that is none is refused: taken as certainty, it would pass every threshold."""
    if not isinstance(value, dict) or "result" not in value:
        return _malformed("must be an object with result and confidence", value)
    confidence = value.get("confidence")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        return ModelMalformed(problems=("output.confidence: must be a number from 0 to 1",), raw=value)
    return ModelGate(result=value["result"], confidence=confidence)


def _malformed(problem: str, raw: MaybeJson) -> ModelMalformed:
    return ModelMalformed(problems=(f"output: {problem}",), raw=raw)


CHAT: Final = Format(question=_chat_with_tool, credentials=_bearer, read=_read_chat)
LOCAL_CHAT: Final = Format(question=_chat_with_schema, credentials=_bearer, read=_read_chat)
MESSAGES: Final = Format(question=_messages, credentials=_api_key, read=_read_messages)
