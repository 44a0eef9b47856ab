"""The test's side of `child.py`: children that are born quickly, die where they are told, and can be asked how."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conftest import ROOT


class Born:
    """A child process, killed or ended at the latest with the test."""

    def __init__(self, nursery: Nursery, pid: int, output: Path) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery, self._output = nursery, output

    def poll(self) -> int | None:
        """How it ended; None while it lives."""
        if self.returncode is None:
            self.returncode = self._nursery.ask(do="poll", pid=self.pid)
        return self.returncode

    def wait(self, timeout: float = 60) -> str:
        """Wait for its end; everything that it wrote."""
        end = time.monotonic() + timeout
        while self.poll() is None:
            assert time.monotonic() < end, f"it still lives: {self._output.read_text()}"
            time.sleep(0.01)
        return self._output.read_text()

    def end(self) -> None:
        """Kill it if it lives, stopped or not."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()


class Nursery:
    """The process that forks."""

    def __init__(self, env: Mapping[str, str], folder: Path) -> None:
        self._folder, self._born = folder, 0
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "tests.crash.child"]
        self._process = subprocess.Popen(command, env=env, cwd=ROOT, text=True, stdin=pipe, stdout=pipe)

    def ask(self, **request: Any) -> Any:
        """One request, one answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, words: tuple[str, ...], env: Mapping[str, str]) -> Born:
        """A child that does this act under these changes of the environment."""
        self._born += 1
        output = self._folder / f"child-{self._born}"
        output.touch()
        pid = self.ask(do="start", words=words, env=dict(env), output=str(output))
        return Born(self, pid, output)

    def close(self) -> None:
        """No more children."""
        self._process.communicate(timeout=30)
