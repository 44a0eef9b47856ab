"""One case as several runs in memory that share a folder of fixtures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conformance import in_memory, matching
from tests.conformance.cases import Case, known
from tests.conformance.expectations import check
from tests.conformance.in_memory import Decisions
from tests.conformance.matching import Unmet
from tests.conformance.stage import Stage
from workflows.recording import Recording


def play(case: Case, folder: Path) -> None:
    """Run the case as often as it says; its expectations are of the last run, and of the files in the folder."""
    known(case["id"], case, in_memory.INPUTS | {"fixtures"})
    with Stage(case) as stage:
        own = stage.case
        for number, one in enumerate(own["fixtures"]):
            known(f"fixtures[{number}]", one, {"mode", "env", "input", "requests_count"})
            stage.case = {**own, **{key: one[key] for key in ("env", "input") if key in one}}
            before = len(stage.tools.requests)
            recording = Recording(tools=one["mode"], folder=folder)
            outcome = in_memory.run(stage, Decisions(own.get("decisions") or ()), recording)
            if "requests_count" in one:
                made = len(stage.tools.requests) - before
                matching.equal(f"fixtures[{number}].requests_count", one["requests_count"], made)
        expected = dict(own["expect"])
        for number, wanted in enumerate(expected.pop("fixture_files", ())):
            _check_files(f"fixture_files[{number}]", wanted, folder)
        check(expected, outcome)


def _check_files(where: str, wanted: Mapping[str, Any], folder: Path) -> None:
    known(where, wanted, {"prefix", "count", "contains", "lacks"})
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*")) if _starts(path, wanted["prefix"])]
    if "count" in wanted:
        matching.equal(f"{where}.count", wanted["count"], len(texts))
    for words in wanted.get("contains", ()):
        if not all(words in text for text in texts):
            raise Unmet(f"{where}.contains: {words!r} is not in each of {texts}")
    for words in wanted.get("lacks", ()):
        if any(words in text for text in texts):
            raise Unmet(f"{where}.lacks: {words!r} is in {texts}")


def _starts(path: Path, prefix: str) -> bool:
    return path.is_file() and path.name.startswith(prefix)
