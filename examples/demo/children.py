"""Child processes that end with the demo: asked when it ends in order, signalled by the kernel when it is killed."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>


def ends_with_parent(parent: int) -> Callable[[], None]:
    """What a new process calls so that it gets SIGTERM when `parent` dies, even of kill -9. Linux only."""
    if not sys.platform.startswith("linux"):
        return lambda: None
    libc = ctypes.CDLL(None)  # looked up before the fork

    def arrange() -> None:
        libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:  # it died before it could be said
            os.kill(os.getpid(), signal.SIGTERM)

    return arrange


class Children:
    """Starts processes, and ends them in the reverse order: the server before the service that its steps call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, name: str, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Run this Python with these arguments. Its errors reach the terminal; Ctrl-C there reaches only the demo."""
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self._folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=ends_with_parent(os.getpid()),
        )
        self._started.append((name, process))
        return process

    def ended(self) -> str | None:
        """A line about the first that is no longer there."""
        for name, process in self._started:
            code = process.poll()
            if code is not None:
                how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
                return f"The {name} {how}."
        return None

    def end(self, seconds: float) -> None:
        """Ask each to end, and kill one that has not after so many seconds."""
        for _, process in reversed(self._started):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill(self) -> None:
        """End all at once."""
        for _, process in self._started:
            if process.poll() is None:
                process.kill()
