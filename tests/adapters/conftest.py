from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.questions import connect
from tests.adapters.recordings import Desk
from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from workflows.adapters.evaluator import Evaluator
from workflows.adapters.models import ModelClient

PROVIDERS = ["anthropic", "openai", "openrouter", "ollama"]


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    made = Evaluator()
    yield made
    made.close()


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools() as server:
        yield server


@pytest.fixture
def desk(tmp_path: Path, evaluator: Evaluator) -> Desk:
    return Desk(tmp_path / "kept", evaluator)


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server
        assert server.failures == []


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(provider: str, models: FakeModels, settings: Any) -> ModelClient:
    return connect(provider, models, settings)
