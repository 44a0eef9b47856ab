"""Runs a command of manage.py in this process, as the shell would: words in, exit code and two texts out."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management import ManagementUtility

from workflows.engine import jsontext

HEAD = """\
version: "1.1"
agent:
  id: clerk
  name: Clerk
  role: Clerk
  goal: Go on.
  model: { provider: ollama, name: test-model, base_url: "http://127.0.0.1:9" }
"""
#: Two people are asked, nothing is called.
ASKING = (
    HEAD
    + """\
  workflow:
    - { step: first, type: approval, message: "Go on with {{ input }}?" }
    - { step: second, type: approval }
"""
)


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    def object(self) -> Any:
        """The one JSON object on stdout; anything beside it is an error of the test."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self.out
        return jsontext.loads(lines[0])


def command(*words: str, text: str | bytes = "") -> Told:
    """`command("runs", "list")`, with `text` on its standard input."""
    raw = text if isinstance(text, bytes) else text.encode()
    out, err, before = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8")
    code: Any = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            ManagementUtility().fetch_command(words[0]).run_from_argv(["manage.py", *words])
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.stdin = before
    assert isinstance(code, int), code
    return Told(code=code, out=out.getvalue(), err=err.getvalue())


def spec_at(folder: Path, text: str = ASKING, name: str = "spec.yaml") -> str:
    """The path of a spec with this text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)
