from __future__ import annotations

from collections.abc import Iterator

import pytest

from workflows.adapters.evaluator import Evaluator


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    made = Evaluator()
    yield made
    made.close()
