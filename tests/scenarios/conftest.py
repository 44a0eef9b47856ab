"""A channel with people in it, and specs that are served."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.surfaces.slack.conftest import channel, slack

__all__ = ["channel", "slack"]


@pytest.fixture(autouse=True)
def served(tmp_path: Path, settings: Settings) -> None:
    settings.KAMPONG_SPECS = [str(tmp_path)]
