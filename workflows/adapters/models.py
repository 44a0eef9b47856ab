"""The model a spec names, behind one method: ask once, get an answer or the reason why there is none.

The two wire formats are spoken directly (`model_formats`), not through a library: exactly one request for each
question, one deadline over all of it, no retry that nobody sees, and nothing that takes seconds to import.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from statestore import conf
from workflows.adapters import model_formats, wire
from workflows.adapters.wire import MIB, Answer, NoAnswer
from workflows.engine import jsontext
from workflows.engine.effects import AskModel, ModelFailed, ModelGate, ModelMalformed, ModelObject, ModelText
from workflows.engine.redact import passwords_in, redact
from workflows.errors import ModelUnavailable
from workflows.spec.model import ModelBlock, Spec

DEFAULT_TIMEOUT_MS: Final = 60_000
OLLAMA_URL: Final = "http://localhost:11434"
SIZE_LIMIT: Final = 16 * MIB
_DETAIL_LIMIT: Final = 300

ModelAnswer: TypeAlias = ModelText | ModelGate | ModelObject | ModelMalformed | ModelFailed


class ModelClient(Protocol):
    """One model at one provider."""

    def ask(self, effect: AskModel) -> ModelAnswer:
        """Make one model call: exactly one request, never repeated."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """How a provider is reached. `setting` holds its base address; a local one has none."""

    format: model_formats.Format
    path: str
    setting: str | None


PROVIDERS: Final[Mapping[str, Provider]] = {
    "anthropic": Provider(format=model_formats.MESSAGES, path="/v1/messages", setting="KAMPONG_ANTHROPIC_API_URL"),
    "openai": Provider(format=model_formats.CHAT, path="/chat/completions", setting="KAMPONG_OPENAI_API_URL"),
    "ollama": Provider(format=model_formats.CHAT, path="/v1/chat/completions", setting=None),
    "openrouter": Provider(format=model_formats.CHAT, path="/chat/completions", setting="KAMPONG_OPENROUTER_API_URL"),
}


def client_for(spec: Spec, environ: Mapping[str, str], timeout_ms: int | None = None) -> ModelClient:
    """The client of the spec's model block. Nothing is contacted.

    `timeout_ms` comes before the spec's own. Raises ModelUnavailable when there is no block, no such provider, or no
    value in the variable that holds the key (engine semantics 4.4).
    """
    block = spec.agent.model
    if block is None:
        raise ModelUnavailable(
            f'Agent "{spec.agent.id}" has no model: give it a `model` block with a provider, a name and an api_key.'
        )
    provider = PROVIDERS.get(block.provider)
    if provider is None:
        known = ", ".join(PROVIDERS)
        raise ModelUnavailable(f'"{block.provider}" is not a known model provider. Known are {known}.')
    return WireClient(
        name=block.provider,
        provider=provider,
        base=_base(block, provider),
        model=block.name,
        key=_key(block, environ),
        key_name=block.api_key_name,
        timeout_ms=timeout_ms or block.timeout_ms or DEFAULT_TIMEOUT_MS,
        allowed=_allowed(block, provider),
    )


def _base(block: ModelBlock, provider: Provider) -> str:
    if provider.setting is not None:
        return str(conf.value(provider.setting)).rstrip("/")
    return (block.base_url or OLLAMA_URL).rstrip("/").removesuffix("/v1")


def _allowed(block: ModelBlock, provider: Provider) -> tuple[str, ...]:
    """The private places that may be called: an address in a spec is its author's, every other the operator's."""
    if provider.setting is None and block.base_url:
        return tuple(conf.value("KAMPONG_PRIVATE_ADDRESSES"))
    return ("*",)


def _key(block: ModelBlock, environ: Mapping[str, str]) -> str | None:
    name = block.api_key_name
    if name is None:
        if block.provider == "ollama":
            return None
        raise ModelUnavailable(f"The model block names no api_key, which provider {block.provider} needs.")
    key = environ.get(name)
    if not key:
        raise ModelUnavailable(
            f"The environment variable {name} is not set. It holds the key for provider {block.provider}."
        )
    return key


@dataclass(frozen=True, kw_only=True)
class WireClient:
    """A provider spoken to over HTTP. The key is in no error and not in the repr."""

    name: str
    provider: Provider
    base: str
    model: str
    timeout_ms: int
    allowed: tuple[str, ...] = ("*",)
    key_name: str | None = None
    key: str | None = field(default=None, repr=False)

    def ask(self, effect: AskModel) -> ModelAnswer:
        """Make one model call: exactly one request, never repeated."""
        answer = self._exchanged(effect)
        if isinstance(answer, ModelFailed):
            return answer
        if not 200 <= answer.status <= 299:
            return self._failed(self._refused(answer, effect.model or self.model))
        try:
            said = jsontext.loads(answer.body.decode("utf-8-sig"))
        except ValueError as problem:
            why = str(problem) if isinstance(problem, jsontext.NotJson) else "not UTF-8"
            return self._failed(
                f"{self.name} answered with a body that cannot be read ({why}); is {self.base} its API?"
            )
        if isinstance(said, dict) and (words := _words_of_error(said)):
            return self._failed(f"{self.name} gave no answer: {self._cut(words)}")
        try:
            return self.provider.format.read(said, effect.want)
        except model_formats.Unusable as problem:
            return self._failed(f"{self.name} gave no usable answer: {self._cut(str(problem)).rstrip('.')}.")

    def _exchanged(self, effect: AskModel) -> Answer | ModelFailed:
        """The provider's answer to one request, or why there is none."""
        body = self.provider.format.question(effect, effect.model or self.model)
        until = time.monotonic() + self.timeout_ms / 1000
        try:
            url = wire.address(self.base + self.provider.path)
        except wire.Unsendable as problem:
            where = self.provider.setting or "base_url in the spec's model block"
            return self._failed(f"{self.name} cannot be asked: {self.base} {problem}. Correct {where}.")
        try:
            return wire.wire_for(self.allowed).exchange(
                "POST",
                url,
                headers=[("Content-Type", "application/json"), *self.provider.format.credentials(self.key)],
                body=jsontext.dumps(body).encode(),
                until=until,
                cap=SIZE_LIMIT,
            )
        except NoAnswer as problem:
            return self._failed(self._no_answer(problem))
        except wire.TooLong:
            return self._failed(f"{self.name} answered with more than {SIZE_LIMIT // MIB} MiB.")
        except wire.AddressRefused as problem:
            return self._failed(f"{self.name} was not asked: {problem}.")
        except wire.Unsendable:
            # The key is the only header that is not ours.
            return self._failed(
                f"{self.name} was not asked: the key in the variable {self.key_name} holds a line break or a control "
                "character. Set it without."
            )
        except UnicodeEncodeError:
            # Without its words, which quote the text.
            return self._failed(f"{self.name} was not asked: the prompt holds half of a surrogate pair.")

    def _no_answer(self, problem: NoAnswer) -> str:
        if self.name == "ollama" and (problem.before or not problem.timed_out):
            why = f"no connection within the limit of {self.timeout_ms} ms" if problem.timed_out else str(problem)
            return (
                f"Ollama cannot be reached at {self.base} ({why}). Start it with `ollama serve`, or set base_url "
                "in the spec's model block. It is a local model: no cloud provider is tried in its place."
            )
        if problem.timed_out:
            return (
                f"{self.name} did not answer within the limit of {self.timeout_ms} ms. "
                "Raise it with `timeout_ms` in the spec's model block, or with --timeout on the command line."
            )
        return f"{self.name} gave no answer at {self.base}: {problem}."

    def _refused(self, answer: Answer, model: str) -> str:
        status = f"status {answer.status} {answer.reason}".strip()
        if answer.status in (401, 403):
            if self.key_name is None:
                return f"{self.name} at {self.base} wants a key ({status}): name its variable as api_key in the spec."
            # The provider's own words may repeat a part of the key.
            return f"{self.name} refused the key of the variable {self.key_name} ({status})."
        if 300 <= answer.status <= 399:
            return f"{self.name} at {self.base} answered with a redirect ({status}), which is not followed."
        detail = self._detail(answer.body)
        words = f"{self.name} refused the call of model {model} ({status})"
        if answer.status == 429:
            words = f"{self.name} has reached its limit for this key ({status})"
        elif answer.status >= 500:
            words = f"{self.name} has a failure of its own ({status})"
        return f"{words}: {detail}" if detail else f"{words}."

    def _detail(self, body: bytes) -> str:
        """The provider's own words about a failure."""
        try:
            said: Any = jsontext.loads(body.decode("utf-8-sig"))
        except ValueError:
            return ""
        return self._cut(_words_of_error(said)) if isinstance(said, dict) else ""

    def _cut(self, words: str) -> str:
        """Words from outside, cut after the key was hidden: half a key is a leak as well."""
        shown = self._without_key(words)
        return shown if len(shown) <= _DETAIL_LIMIT else shown[:_DETAIL_LIMIT] + "..."

    def _failed(self, error: str) -> ModelFailed:
        return ModelFailed(error=self._without_key(error))

    def _without_key(self, text: str) -> str:
        return redact(text, passwords_in(self.base) | ({self.key} if self.key else set()))


def _words_of_error(said: Mapping[str, Any]) -> str:
    """What an answer says went wrong: `{error: {message}}` or `{error: text}`, from OpenRouter even with status 200."""
    error = said.get("error")
    text = error.get("message") if isinstance(error, dict) else error
    return text if isinstance(text, str) else ""
