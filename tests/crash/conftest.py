"""A run of the paying clerk against a counting service, and children that die where they are told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fakes_tools import FakeTools
from tests.workbench import PAYING, PAYING_ANSWERS, write_spec
from workflows.registry import SpecFile

Child = Callable[..., subprocess.Popen[str]]


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


@pytest.fixture
def child(process_env: dict[str, str]) -> Iterator[Child]:
    """`child("advance", run, faults="run.called=kill")`: a process on this test's database."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, faults: str = "", **settings: str) -> subprocess.Popen[str]:
        env = process_env | {"KAMPONG_FAULTS": faults, "PAY_TOKEN": "tok-canary"} | settings
        command = [sys.executable, "-m", "tests.crash.child", *words]
        process = subprocess.Popen(
            command, env=env, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)
            process.kill()
        process.communicate(timeout=30)


def dies(process: subprocess.Popen[str]) -> None:
    """It was killed where it was told, not before and not after."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, (process.returncode, out, err)
