"""What no file may bring about, good once or made up: an exception, a long time, much memory, an error without a place.

A process of its own loads the files, so that its memory can be told from that of the tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.counts import count
from tests.databases import PROVE

ROOT = Path(__file__).resolve().parents[2]
CHUNK = 2_500


def told(*arguments: str) -> list[dict[str, Any]]:
    child = subprocess.run(
        [sys.executable, "-m", "tests.spec.mutated_child", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-4_000:]
    return [json.loads(line) for line in child.stdout.splitlines()]


@pytest.mark.timeout(900)
def test_mutated_specs_are_answered_at_once_and_to_the_point() -> None:
    mutants = count(500, 10_000)
    for first in range(0, mutants, CHUNK):
        end = min(first + CHUNK, mutants)
        *bad, last = told("mutants", "kampong", str(first), str(end))

        assert bad == []
        assert last["done"] == end - first


#: Those that once took long or filled the memory; the others are loaded when proving.
WORST = (
    "wrong items",
    "empty steps",
    "aliases of a list of expressions",
    "a response path",
)


@pytest.mark.timeout(900)
def test_the_largest_files_cost_no_more_than_their_size_explains() -> None:
    *bad, last = told("largest", *(() if PROVE else WORST))

    assert bad == []
    assert last["done"] >= len(WORST)
