"""Model calls recorded and replayed, as tools are (engine semantics 16).

A fixture is found by everything that the model was asked. It keeps the outcome, a failure included, so that a replay
takes the same course; the question itself it does not keep: a prompt holds whatever a run has read so far.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workflows.adapters import fixtures
from workflows.adapters.fixtures import Fixtures, Unusable
from workflows.adapters.models import ModelAnswer, ModelClient
from workflows.adapters.redacting import Redactor
from workflows.engine import jsontext
from workflows.engine.effects import AskModel, ModelFailed, ModelGate, ModelMalformed, ModelObject, ModelText
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.spec.shapes import is_number


@dataclass(frozen=True, kw_only=True)
class Asking:
    """The part of a question that stands in the spec's model block."""

    provider: str
    model: str

    def file(self, effect: AskModel, hidden: Redactor) -> str:
        """The name of the fixture's file, in its subfolder."""
        asked: dict[str, Json] = {
            "provider": self.provider,
            "model": effect.model or self.model,
            "system": effect.system,
            "prompt": effect.prompt,
            "want": effect.want,
            "structure": effect.structure,
            "temperature": effect.temperature,
        }
        hidden = hidden.for_keys()
        text = jsontext.canonical({name: hidden.tree(value) for name, value in asked.items()})
        key = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        return f"{fixtures.MODELS}/{fixtures.file_name(effect.step, key)}"


class RecordingModel:
    """Passes each question on, and keeps what came of it."""

    def __init__(self, client: ModelClient, asking: Asking, folder: Fixtures, secrets: Iterable[str]) -> None:
        self._client = client
        self._asking = asking
        self._folder = folder
        self._hidden = Redactor(secrets)

    def ask(self, effect: AskModel) -> ModelAnswer:
        """What the client answers. The call fails when that cannot be kept: a run with holes cannot be repeated."""
        answer = self._client.ask(effect)
        about: dict[str, Json] = {
            "step": effect.step,
            "provider": self._asking.provider,
            "model": effect.model or self._asking.model,
            "want": effect.want,
        }
        try:
            self._folder.write(self._asking.file(effect, self._hidden), about | _kept(answer, self._hidden))
        except Unusable as problem:
            return ModelFailed(error=f"{self._asking.provider} answered, but that was not recorded: {problem}.")
        return answer


class ReplayingModel:
    """Answers from recordings alone; no provider is ever asked, and none needs a key."""

    def __init__(self, asking: Asking, folder: Fixtures, secrets: Iterable[str]) -> None:
        self._asking = asking
        self._folder = folder
        self._hidden = Redactor(secrets)

    def ask(self, effect: AskModel) -> ModelAnswer:
        """What was recorded for this question."""
        file = self._asking.file(effect, self._hidden)
        where = self._folder.folder / file
        try:
            kept = self._folder.read(file)
            if kept is None:
                return ModelFailed(error=_miss(effect, where))
            return _replayed(kept)
        except Unusable as problem:
            return ModelFailed(error=f'The answer for step "{effect.step}" cannot be replayed: {problem}.')
        except ValueError as problem:
            return ModelFailed(
                error=f'The answer for step "{effect.step}" cannot be replayed: the fixture {where} is broken: '
                f"{problem}. Record it again."
            )


def _miss(effect: AskModel, where: object) -> str:
    return (
        f'The answer for step "{effect.step}" was never recorded, there is no fixture {where}. Record it first with '
        "--models record. Everything that the model is asked is part of the name: the prompt with the outputs so far, "
        "the instructions, the model."
    )


# The outcomes as JSON ------------------------------------------------------------------------------------------


def _kept(answer: ModelAnswer, hidden: Redactor) -> dict[str, Json]:
    match answer:
        case ModelText():
            return {"outcome": "text", "text": hidden.text(answer.text)}
        case ModelGate():
            return {"outcome": "gate", "result": hidden.tree(answer.result), "confidence": answer.confidence}
        case ModelObject():
            return {"outcome": "object", **_there("value", hidden.tree(answer.value))}
        case ModelMalformed():
            problems = [hidden.text(problem) for problem in answer.problems]
            return {"outcome": "malformed", "problems": problems, **_there("raw", hidden.tree(answer.raw))}
        case ModelFailed():
            return {"outcome": "failed", "error": hidden.text(answer.error)}


def _there(name: str, value: MaybeJson) -> dict[str, Json]:
    return {} if value is NOTHING else {name: value}


def _replayed(kept: dict[str, Any]) -> ModelAnswer:
    """ValueError for what no recording of ours says."""
    match kept:
        case {"outcome": "text", "text": str(text)}:
            return ModelText(text=text)
        case {"outcome": "gate", "result": result, "confidence": confidence} if _is_confidence(confidence):
            return ModelGate(result=result, confidence=confidence)
        case {"outcome": "object"}:
            return ModelObject(value=kept.get("value", NOTHING))
        case {"outcome": "malformed", "problems": [*problems]} if all(isinstance(one, str) for one in problems):
            return ModelMalformed(problems=tuple(problems), raw=kept.get("raw", NOTHING))
        case {"outcome": "failed", "error": str(error)}:
            return ModelFailed(error=error)
    raise ValueError("it holds no outcome that is known")


def _is_confidence(value: Json) -> bool:
    return value is None or (is_number(value) and 0 <= value <= 1)
