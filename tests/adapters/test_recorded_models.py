"""Model calls recorded and replayed: every outcome, keys without secrets, and what is no recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.questions import KEY, connect, question, spec_with
from tests.fakes_models import FakeModels
from workflows.adapters.fixtures import Fixtures
from workflows.adapters.models import ModelAnswer
from workflows.adapters.recorded_models import Asking, RecordingModel, ReplayingModel
from workflows.engine.effects import AskModel, ModelFailed, ModelGate, ModelMalformed, ModelObject, ModelText
from workflows.errors import ModelUnavailable
from workflows.recording import Recording

OBJECT = {"want": "object", "structure": {"type": "object"}}
OUTCOMES: list[tuple[Any, dict[str, Any], type]] = [
    ("Dear é\u2028", {}, ModelText),
    ({"result": {"b": 1, "a": [1.5, None]}, "confidence": 0.9}, {"want": "gate"}, ModelGate),
    ({"result": 5, "confidence": 1}, {"want": "gate"}, ModelGate),
    ({"object": {"b": 1, "a": 10**20}}, OBJECT, ModelObject),
    ({"object": None}, OBJECT, ModelObject),
    ("", OBJECT, ModelObject),
    ({"malformed": {"problems": [], "raw": "no JSON {"}}, OBJECT, ModelMalformed),
    ({"object": {"no": "result"}}, {"want": "gate"}, ModelMalformed),
    ("", {"want": "gate"}, ModelMalformed),
    ({"error": "the model is not well"}, {}, ModelFailed),
    ({"status": 429, "json": {}}, {}, ModelFailed),
    ({"drop": True}, {}, ModelFailed),
]


class Booth:
    """A recording and a replaying client on one folder."""

    def __init__(self, folder: Path, models: FakeModels, settings: Any, *, key: str = KEY) -> None:
        self.folder = folder
        asking, kept = Asking(provider="openai", model="test-model"), Fixtures(folder)
        self._recording = RecordingModel(connect("openai", models, settings), asking, kept, [key])
        self._replaying = ReplayingModel(asking, kept, [key])

    def record(self, effect: AskModel) -> ModelAnswer:
        return self._recording.ask(effect)

    def replay(self, effect: AskModel) -> ModelAnswer:
        return self._replaying.ask(effect)

    def files(self) -> list[Path]:
        return sorted((self.folder / "models").iterdir())


@pytest.fixture
def booth(tmp_path: Path, models: FakeModels, settings: Any) -> Booth:
    return Booth(tmp_path, models, settings)


@pytest.mark.parametrize(("answer", "changes", "kind"), OUTCOMES)
def test_every_outcome_replays_as_it_was(
    answer: Any, changes: dict[str, Any], kind: type, booth: Booth, models: FakeModels
) -> None:
    models.answers["draft"] = answer
    asked = question(**changes)
    live = booth.record(asked)
    assert isinstance(live, kind), live
    assert booth.replay(asked) == live
    assert booth.replay(asked) == live
    assert len(models.requests) == 1


def test_a_recording_holds_the_outcome_and_not_the_question(booth: Booth, models: FakeModels) -> None:
    models.answers["draft"] = f"I know {KEY}"
    booth.record(question(step="draft", prompt="Step: draft\nthe patient's name"))
    (file,) = booth.files()
    assert file.name.startswith("draft.")
    content = {"step": "draft", "provider": "openai", "model": "test-model", "want": "text"}
    assert json.loads(file.read_text()) == content | {"outcome": "text", "text": "I know [REDACTED]"}


@pytest.mark.parametrize(
    "changes",
    [
        {"system": "other"},
        {"prompt": "Step: draft\nother"},
        {"want": "gate"},
        {"structure": {"type": "object"}},
        {"temperature": 0.5},
        {"model": "another"},
    ],
)
def test_everything_that_is_asked_tells_questions_apart(
    changes: dict[str, Any], booth: Booth, models: FakeModels
) -> None:
    models.answers["draft"] = ["one", {"result": 2, "confidence": 1} if changes.get("want") == "gate" else "two"]
    first, second = question(), question(**changes)
    given = booth.record(first)
    missed = booth.replay(second)
    assert isinstance(missed, ModelFailed)
    assert 'step "draft" was never recorded, there is no fixture' in missed.error
    assert str(booth.folder / "models" / "draft.") in missed.error
    assert "--models record" in missed.error
    other = booth.record(second)
    assert (booth.replay(first), booth.replay(second)) == (given, other)
    assert len(booth.files()) == 2


def test_a_step_that_names_the_models_own_name_asks_the_same(booth: Booth, models: FakeModels) -> None:
    models.answers["draft"] = "one"
    booth.record(question())
    assert booth.replay(question(model="test-model")) == ModelText(text="one")


def test_a_rotated_secret_finds_the_recording(models: FakeModels, settings: Any, tmp_path: Path) -> None:
    models.answers["draft"] = "one"
    told = 'Step: draft\nPrior step outputs: {"look":"%s"}'
    Booth(tmp_path, models, settings, key='old "key').record(question(prompt=told % 'old \\"key', system='old "key'))
    again = Booth(tmp_path, models, settings, key="new")
    for said in ("new", "[REDACTED]", "%5BREDACTED%5d"):
        assert again.replay(question(prompt=told % said, system="new")) == ModelText(text="one")


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "",
        "[]",
        '{"outcome": "text"}',
        '{"outcome": "text", "text": 5}',
        '{"outcome": "gate", "confidence": 1}',
        '{"outcome": "gate", "result": 1, "confidence": true}',
        '{"outcome": "gate", "result": 1, "confidence": 7}',
        '{"outcome": "malformed", "problems": "x"}',
        '{"outcome": "malformed", "problems": [1]}',
        '{"outcome": "failed"}',
        '{"outcome": ["text"], "text": "x"}',
    ],
)
def test_a_broken_recording_fails_the_step_and_is_named(content: str, booth: Booth, models: FakeModels) -> None:
    models.answers["draft"] = "one"
    booth.record(question())
    booth.files()[0].write_text(content)
    failed = booth.replay(question())
    assert isinstance(failed, ModelFailed)
    assert f'step "draft" cannot be replayed: the fixture {booth.files()[0]} is broken' in failed.error
    assert failed.error.endswith(". Record it again.")


def test_an_answer_that_cannot_be_kept_fails_the_step(booth: Booth, models: FakeModels) -> None:
    models.answers["draft"] = "one"
    (booth.folder / "models").touch()
    failed = booth.record(question())
    assert isinstance(failed, ModelFailed)
    assert "openai answered, but that was not recorded: the fixture" in failed.error


def test_a_spec_without_a_model_is_refused_in_replay_too(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="has no model"):
        Recording(models="replay", folder=tmp_path).model_for(spec_with(None), {}, None)


def test_a_replaying_model_needs_no_key(tmp_path: Path) -> None:
    spec = spec_with({"provider": "openai", "name": "m", "api_key": "${MODEL_KEY}"})
    for environ in ({}, {"MODEL_KEY": ""}):
        assert isinstance(Recording(models="replay", folder=tmp_path).model_for(spec, environ, None), ReplayingModel)
        with pytest.raises(ModelUnavailable, match="MODEL_KEY is not set"):
            Recording(models="record", folder=tmp_path).model_for(spec, environ, None)
