"""A terminal that is ready: a process that has Django loaded and runs one command each time it is told to.

A command takes a second to start. This process has started already: it reads a command's words (JSON) from stdin, says
`ready`, waits for one more line, and does what the terminal would do.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    err: str


class Terminal:
    """The parent's side. `log` is where the process writes what is not the command's own."""

    def __init__(self, env: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("w") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.commanding"],
                env=env,
                cwd=ROOT,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )

    def _line(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def type(self, *words: str) -> None:
        """Everything but the last key."""
        self._line(json.dumps(words))
        assert self._read() == "ready\n", self.log.read_text()

    def enter(self) -> Said:
        """The last key; how the command ended."""
        self._line("go")
        return Said(**json.loads(self._read()))

    def run(self, *words: str) -> Said:
        """Both."""
        self.type(*words)
        return self.enter()

    def end(self) -> None:
        """Close it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


def main() -> None:
    """The child's side, until stdin ends."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()

    from django.core.management import CommandError, call_command
    from django.db import connection

    connection.ensure_connection()
    for line in sys.stdin:
        words = json.loads(line)
        print("ready", flush=True)  # noqa: T201  (the parent reads it)
        sys.stdin.readline()
        out, err, code = io.StringIO(), io.StringIO(), 0
        try:
            call_command(*words, stdout=out, stderr=err)
        except CommandError as error:
            code = error.returncode
            err.write(str(error))
        told = {"code": code, "out": out.getvalue(), "err": err.getvalue()}
        print(json.dumps(told), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
