"""`make demo` for real: a copy of the product in a temporary folder, its own database and ports, as a child process."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


def copy_of_the_product(folder: Path) -> Path:
    """What a clone holds that the demo needs, with its compiled files, and nothing of this folder's state."""
    copy = folder / "kampong"
    copy.mkdir()
    shutil.copy2(ROOT / "manage.py", copy)
    for name in ("kampong", "workflows", "approvals", "statestore", "templates", "examples"):
        shutil.copytree(ROOT / name, copy / name)
    return copy


def free_ports(count: int) -> list[int]:
    """Ports on which nothing listens now, and which no system gives to a connection that somebody opens meanwhile."""
    free: list[int] = []
    while len(free) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            free.append(port)
    return free


def until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Wait until the condition gives something true, and return that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds:.0f} s: {what}")


def environment(**more: str) -> dict[str, str]:
    """A newcomer's: nothing of the test run in it."""
    plain = {name: text for name, text in os.environ.items() if not name.startswith(("KAMPONG_", "DEMO_"))}
    for name in ("DATABASE_URL", "SECRET_KEY", "MAKELEVEL", "DJANGO_SETTINGS_MODULE"):
        plain.pop(name, None)
    return plain | more


class Demo:
    """A started demo. `printed` grows while it runs; standard error comes with it."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.printed = ""
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "examples/demo/run.py"],
            cwd=folder,
            env=environment(**env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed += line

    def ready(self) -> Demo:
        """Once it has said what to try."""
        whole = re.compile(r"kill -9 \d+\n.*\n.*curl .*\n")
        until(lambda: whole.search(self.printed) or self.process.poll() is not None, "the demo is up")
        assert self.process.poll() is None, self.printed
        return self

    def fact(self, name: str) -> str:
        """What stands behind a word of the printed table."""
        return self.found(rf"^ *{name} +(.+)$")

    def found(self, pattern: str) -> str:
        """The first group of a pattern in what was printed."""
        found = re.search(pattern, self.printed, re.MULTILINE)
        assert found, f"{pattern} is not in:\n{self.printed}"
        return found[1]

    def lines(self, word: str) -> list[str]:
        """The printed lines that begin with this word: what one would paste."""
        return [line.strip() for line in self.printed.splitlines() if line.strip().startswith(word)]

    def paste(self, line: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a printed line in a shell, in the folder."""
        return subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            env=environment(),
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def below(self) -> list[int]:
        """The ids of all processes that it started, and of those that they started."""
        found, look = [], [self.process.pid]
        while look:
            parent = look.pop()
            listed = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False)
            children = [int(word) for word in listed.stdout.split()]
            found += children
            look += children
        return found

    def end(self, number: int = signal.SIGINT) -> int:
        """Send the signal and wait; the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """The exit code, once it has ended by itself."""
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def close(self) -> None:
        """Leave nothing behind, whatever the test did."""
        left = self.below()
        if self.process.poll() is None:
            self.process.kill()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def is_alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def get(port: int, path: str, token: str = "") -> Any:
    """The JSON at a path of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    said = json.loads(connection.getresponse().read())
    connection.close()
    return said


@contextlib.contextmanager
def demos(folder: Path, **env: str) -> Iterator[Callable[[], Demo]]:
    """A function that starts the demo in this folder; all that it started are ended at the end."""
    started: list[Demo] = []

    def start() -> Demo:
        started.append(Demo(folder, **env))
        return started[-1]

    try:
        yield start
    finally:
        for demo in started:
            demo.close()
