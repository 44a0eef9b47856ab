"""The order desk and its outside service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.triggers.orders import Orders, served


@pytest.fixture
def orders() -> Iterator[Orders]:
    """The outside service; it counts."""
    with Orders() as service:
        yield service


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the served specs lie."""
    path = tmp_path / "specs"
    path.mkdir()
    with served(path):
        yield path
