"""The services outside and the server, of one test each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Clock, People, Processes
from tests.unattended.house import House
from tests.unattended.outside import Outside


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    outside = Outside(tmp_path)
    yield outside
    outside.close()


@pytest.fixture
def house(outside: Outside, manage: Processes, people: People, clock: Clock) -> Iterator[Callable[..., House]]:
    """`house("support.yaml", "burst")`: a server of this example, killed at these moments, that says nothing odd."""
    built: list[House] = []

    def build(name: str, *moments: str) -> House:
        built.append(House(manage, outside, name, people, clock, moments))
        return built[-1]

    yield build
    for one in built:
        one.close()
        assert one.trouble() == []
        assert not one.moments, "it was never killed then"
