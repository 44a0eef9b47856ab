"""Builders for the tests of model clients: a spec with a model block, a client of a fake server, a question."""

from __future__ import annotations

from typing import Any

from tests.fakes_models import FakeModels
from workflows.adapters.models import ModelClient, client_for
from workflows.engine.effects import AskModel
from workflows.spec.load import load
from workflows.spec.model import Spec

KEY = "sk-hummingbird"


def spec_with(model: dict[str, Any] | None) -> Spec:
    loaded = load(
        'version: "1.1"\nagent:\n  id: clerk\n  name: N\n  role: R\n  goal: G\n'
        + (f"  model: {model}\n" if model is not None else "")
        + "  workflow:\n    - step: draft\n      action: write\n"
    )
    assert loaded.spec is not None, loaded.errors
    return loaded.spec


def connect(provider: str, models: FakeModels, settings: Any, timeout_ms: int | None = None) -> ModelClient:
    settings.KAMPONG_ANTHROPIC_API_URL = models.anthropic_url
    settings.KAMPONG_OPENAI_API_URL = models.openai_url
    settings.KAMPONG_OPENROUTER_API_URL = models.openrouter_url
    model: dict[str, Any] = {"provider": provider, "name": "test-model"}
    if provider == "ollama":
        model["base_url"] = models.url
    else:
        model["api_key"] = "${MODEL_KEY}"
    return client_for(spec_with(model), {"MODEL_KEY": KEY}, timeout_ms)


def question(**changes: Any) -> AskModel:
    fields: dict[str, Any] = {
        "step": "draft",
        "index": 0,
        "system": "Role: R\nGoal: G",
        "prompt": "User input: é\nStep: draft\nAction: write",
        "want": "text",
    }
    return AskModel(**{**fields, **changes})
