"""One spec, the same people, five surfaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.surfaces.everywhere.surfaces import Admin, Rest, SignedLink, Slack, Surface, Terminal
from tests.surfaces.slack.conftest import Channel, channel, slack  # noqa: F401  (fixtures)

NAMES = ("admin", "api", "slack", "link", "cli")


@pytest.fixture(params=NAMES)
def surface(request: pytest.FixtureRequest, channel: Channel) -> Surface:  # noqa: F811
    """Each of the five in turn; the channel is there for all, so that each has the same request before it."""
    found: dict[str, Surface] = {one.name: one for one in (Admin(), Rest(), SignedLink(), Terminal(), Slack(channel))}
    return found[request.param]


@pytest.fixture(autouse=True)
def served(tmp_path: Path, settings: Settings) -> None:
    settings.KAMPONG_SPECS = [str(tmp_path)]
