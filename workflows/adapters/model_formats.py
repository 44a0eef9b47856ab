"""The wire formats of model providers: a question as JSON, an answer read back.

Structure is asked for in the form that the most models take, and never by force. The prompt says what to answer as
well, so an answer that comes as plain text is read too; it is parsed and handed on unvalidated.

- Chat completions get the JSON Schema as their response format, not strict: strict schemas know no optional property.
  A function to call is refused there by OpenAI's latest reasoning models (gpt-5.5 and later), and by OpenRouter and
  Ollama for models without tools. There is no limit of tokens: its name depends on the model.
- Messages get the schema as a tool that may be called. Forcing the call is refused by models that always think (Claude
  Opus 5.5, Fable 5.1), and a response format by those before Claude 4.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from workflows.engine import jsontext, prompts, schema
from workflows.engine.effects import AskModel, ModelGate, ModelMalformed, ModelObject, ModelText
from workflows.engine.values import NOTHING, Json, MaybeJson

Want: TypeAlias = Literal["text", "gate", "object"]
Said: TypeAlias = ModelText | ModelGate | ModelObject | ModelMalformed

NAME: Final = "answer"
#: Anthropic wants a limit with each question, and thinking counts. All models since Claude 4 accept twice as many.
MAX_TOKENS: Final = 16_000
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)


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


def _chat_with_schema(effect: AskModel, model: str) -> Json:
    if effect.want == "text":
        return _chat(effect, model)
    wanted = {"name": NAME, "schema": _structure(effect), "strict": False}
    return {**_chat(effect, model), "response_format": {"type": "json_schema", "json_schema": wanted}}


def _bearer(key: str | None) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {key}")] if key else []


def _read_chat(said: Json, want: Want) -> Said:
    try:
        choice = said["choices"][0]
        _refuse_error(choice)
        message = choice["message"]
        refusal, finish = message.get("refusal"), choice.get("finish_reason")
        calls = message.get("tool_calls") or []
        text = _joined(message.get("content"))
        arguments = calls[0]["function"]["arguments"] if calls else None
    except (KeyError, IndexError, TypeError, AttributeError) as problem:
        raise Unusable("it does not have the form of a chat completion") from problem
    if refusal and isinstance(refusal, str):
        raise Unusable(f"the model declined to answer: {refusal}")
    if finish == "content_filter":
        raise Unusable("the provider's content filter held it back")
    cut = finish == "length"
    if arguments is None:
        return _from_text(text, want, cut)
    # Nobody offered a function; a server that calls one all the same has put the answer there, under whatever name.
    if isinstance(arguments, str):
        return _from_json_text(arguments, want, cut)
    return _structured(arguments, want)


def _refuse_error(choice: Json) -> None:
    """OpenRouter reports a failure that came after its headers inside an answer with status 200."""
    error = choice.get("error")
    if isinstance(error, dict) or choice.get("finish_reason") == "error":
        said = error.get("message") if isinstance(error, dict) else None
        raise Unusable(f"the provider failed while it answered: {said}" if said else "the provider failed")


def _joined(content: Json) -> str:
    """The text of a message, which may come in parts."""
    parts = [content or ""] if not isinstance(content, list) else _texts(content)
    return "".join(parts)


def _texts(parts: list[Json]) -> list[Json]:
    return [part["text"] for part in parts if part["type"] == "text"]


# Messages: anthropic -------------------------------------------------------------------------------------------


_TOOL: Final = "Gives the final answer. Call it once, with the JSON object that was asked for as its input."


def _messages(effect: AskModel, model: str) -> Json:
    body: dict[str, Json] = {
        "model": model,
        "max_tokens": MAX_TOKENS,
        "system": effect.system,
        "messages": [{"role": "user", "content": effect.prompt}],
        **_temperature(effect),
    }
    if effect.want != "text":
        tool = {"name": NAME, "description": _TOOL, "input_schema": _structure(effect)}
        body |= {"tools": [tool], "tool_choice": {"type": "auto"}}
    return body


def _api_key(key: str | None) -> list[tuple[str, str]]:
    return [("x-api-key", key or ""), ("anthropic-version", "2023-06-01")]


def _read_messages(said: Json, want: Want) -> Said:
    try:
        blocks = said["content"]
        text = "".join(_texts(blocks))
        inputs = [block["input"] for block in blocks if block["type"] == "tool_use"]
        stopped = said.get("stop_reason")
    except (KeyError, TypeError, AttributeError) as problem:
        raise Unusable("it does not have the form of a message") from problem
    if stopped == "refusal":
        raise Unusable("the model declined to answer")
    cut = stopped in ("max_tokens", "model_context_window_exceeded")
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
    if not text.strip() and not cut:
        return ModelObject(value=NOTHING) if want == "object" else _malformed("there was no answer", NOTHING)
    inside = None if cut else _object_inside(text)
    return _from_json_text(text, want, cut) if inside is None else _structured(inside, want)


def _object_inside(text: str) -> Json | None:
    """The one JSON object that a text says something around, in a fence or bare; None when it is no such text."""
    first, last = text.find("{"), text.rfind("}")
    if not text[:first].strip() and not text[last + 1 :].strip():
        return None
    fenced = _FENCED.findall(text)
    try:
        value = jsontext.loads(fenced[0] if len(fenced) == 1 else text[first : last + 1])
    except ValueError:
        return None
    return value if isinstance(value, dict) and not text.lstrip().startswith("[") else None


def _from_json_text(text: str, want: Want, cut: bool) -> Said:
    try:
        value = jsontext.loads(text)
    except ValueError as problem:
        if cut:
            return ModelMalformed(problems=(_CUT,), raw=text or NOTHING)
        return _malformed(f"the answer is {problem}", text)
    return _structured(value, want)


def _structured(value: Json, want: Want) -> Said:
    if want == "text":
        raise Unusable("text was asked for, and it is something else")
    return ModelObject(value=value) if want == "object" else _gate(value)


def _gate(value: Json) -> ModelGate | ModelMalformed:
    """A gate's answer. A confidence that is none is refused: taken as certainty, it would pass every threshold."""
    if not isinstance(value, dict) or "result" not in value:
        return _malformed("must be an object with result and confidence", value)
    problem = schema.gate_problem(value)
    if problem is not None:
        return ModelMalformed(problems=(problem,), raw=value)
    return ModelGate(result=value["result"], confidence=value["confidence"])


def _malformed(problem: str, raw: MaybeJson) -> ModelMalformed:
    return ModelMalformed(problems=(f"output: {problem}",), raw=raw)


CHAT: Final = Format(question=_chat_with_schema, credentials=_bearer, read=_read_chat)
MESSAGES: Final = Format(question=_messages, credentials=_api_key, read=_read_messages)
