"""How soon `run_spec` is at its first step: no model SDK is imported before a model is asked, and little else."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.counts import count
from tests.databases import PROVE
from tests.surfaces.cli.running import HEAD, spec_at

pytestmark = pytest.mark.only("sqlite")  # none of it has to do with the database

#: Packages that cost a large part of a second, or talk to a provider; some are not installed, and none may creep in.
HEAVY = {
    "pydantic_ai",
    "openai",
    "anthropic",
    "ollama",
    "google",
    "mistralai",
    "slack_sdk",
    "tiktoken",
    "numpy",
    "requests",
}
#: What only a server, a worker's queue or the evaluator's child needs.
SERVERS = {"uvicorn", "daphne", "hypercorn", "granian", "twisted", "playwright"}
LIMIT = 1.3 if PROVE else 2.0
FAILING = (
    HEAD
    + """\
  tools: [{ name: gone, action: http_request, method: GET, url: "http://127.0.0.1:9/" }]
  workflow: [{ step: go, type: tool, tool: gone }]
"""
)
LOADED = """\
import runpy, sys
sys.argv = ["manage.py", *sys.argv[1:]]
try:
    runpy.run_path("manage.py", run_name="__main__")
finally:
    print("LOADED", *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"DATABASE_URL": f"sqlite:///{folder / 'none.db'}"}


def test_a_run_that_asks_no_model_imports_no_sdk(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", LOADED, "run_spec", spec_at(tmp_path, FAILING), "--input", "x"],
        cwd=ROOT,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.stdout.startswith("go running..."), told.stderr
    loaded = set(told.stderr.splitlines()[-1].split())
    assert "LOADED" in loaded
    assert not loaded & (HEAVY | SERVERS)


def test_it_starts_about_as_fast_as_a_check_of_the_same_settings(tmp_path: Path, report: Callable[[str], None]) -> None:
    """Whole commands in turns, so that both meet the same weather; the first of each warms the disk."""
    spec, env = spec_at(tmp_path, FAILING), _environment(tmp_path)

    def took(*words: str) -> float:
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=env, capture_output=True, timeout=120, check=False
        )
        return time.perf_counter() - began

    took("check")
    took("run_spec", spec, "--input", "x")
    ratios = [took("run_spec", spec, "--input", "x") / took("check") for _ in range(count(3, 15))]
    middle = statistics.median(ratios)
    report(f"run_spec takes {middle:.2f} times as long as check (median of {len(ratios)} pairs)")
    assert middle < LIMIT, ratios
