"""A `serve` in a process of its own, on a free port."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.management import load_command_class

from tests.conftest import Processes

ADDRESS = re.compile(r"runs at (http://127\.0\.0\.1:\d+)/")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def ended(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs one of our commands to its end in this process, as the shell would: for what ends before it begins."""

    def run(name: str, *words: object) -> Ended:
        capfd.readouterr()
        command = load_command_class("workflows", name)
        with pytest.raises(SystemExit) as stop:
            command.run_from_argv(["manage.py", name, *map(str, words)])
        said = capfd.readouterr()
        return Ended(code=int(stop.value.code or 0), out=said.out, err=said.err)

    return run


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait for a condition; fail when it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


class Served:
    """A `serve` that runs, and what it said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            self.said.append(line.rstrip())
            if line.startswith("Ctrl-C"):
                break
        found = ADDRESS.search("\n".join(self.said))
        assert found, (self.said, process.stderr.read() if process.stderr else "")
        self.url = found[1]

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers), timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def refuses(self) -> bool:
        """Whether it takes no new connection any more."""
        try:
            with socket.create_connection(("127.0.0.1", urlsplit(self.url).port or 80), timeout=30):
                return False
        except ConnectionRefusedError:
            return True

    def end(self, how: signal.Signals = signal.SIGTERM, within: float = 60) -> tuple[int, str, str]:
        """Send the signal; exit code and what was said since the start."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=within)
        return self.process.returncode, out, err


@pytest.fixture
def serve(manage: Processes) -> Callable[..., Served]:
    """Starts `serve` on a free port."""

    def start(*arguments: object, **env: str) -> Served:
        words = [str(argument) for argument in arguments]
        return Served(manage.start("serve", "--port", "0", *words, env=env))

    return start


@pytest.fixture
def fresh_database(tmp_path: Path, process_env: dict[str, str]) -> Iterator[str]:
    """The URL of an empty database beside the test's own."""
    url = process_env["DATABASE_URL"]
    if url.startswith("sqlite"):
        yield f"sqlite:///{tmp_path / 'fresh.db'}"
        return
    name = f"fresh_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            yield re.sub(r"/[^/?]+(\?|$)", rf"/{name}\1", url, count=1)
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
