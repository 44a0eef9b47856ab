"""A run of the paying clerk against a counting service, and children that die where they are told."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import database_url
from tests.crash.nursery import Born, Nursery
from tests.fakes_tools import FakeTools
from tests.workbench import PAYING, PAYING_ANSWERS, write_spec
from workflows.registry import SpecFile

Child = Callable[..., Born]


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    """The outside service; it counts."""
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools(PAYING_ANSWERS) as service:
        yield service


@pytest.fixture
def spec(tmp_path: Path, tools: FakeTools) -> SpecFile:
    """look - pay (asks) - receipt."""
    return write_spec(tmp_path, PAYING, url=tools.url)


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Nursery]:
    """One process that has Django loaded, on the test database."""
    nursery = Nursery(dict(os.environ, DATABASE_URL=database_url()), tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.fixture
def child(nursery: Nursery, transactional_db: None) -> Iterator[Child]:
    """`child("advance", run, faults="run.called=kill")`: a process on this test's database."""
    started: list[Born] = []

    def start(*words: str, faults: str = "", **settings: str) -> Born:
        env = {"KAMPONG_FAULTS": faults, "PAY_TOKEN": "tok-canary"} | settings
        started.append(nursery.start(words, env))
        return started[-1]

    yield start
    for process in started:
        process.end()


def dies(process: Born) -> None:
    """It was killed where it was told, not before and not after."""
    said = process.wait()
    assert process.returncode == -signal.SIGKILL, (process.returncode, said)
