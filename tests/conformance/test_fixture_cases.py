"""Recorded runs replay as the engine cases say, and the runner of these cases can fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance import cases, replaying
from tests.conformance.cases import Case
from tests.conformance.matching import CaseError, Unmet
from tests.conformance.test_the_runner import changed


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases.of(cases.FIXTURES)])
def test_a_recorded_run_replays_as_the_case_says(case: Case, tmp_path: Path) -> None:
    replaying.play(case, tmp_path / "fixtures")


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("fixtures", 0, "requests_count"), 0, r"fixtures\[0\].requests_count"),
        (("fixtures", 1, "mode"), "live", r"fixtures\[1\].requests_count"),
        (("expect", "fixture_files", 0, "count"), 2, "count"),
        (("expect", "fixture_files", 0, "prefix"), "got.", "count"),
        (("expect", "fixture_files", 0, "contains"), ["nothing of it"], "contains"),
        (("expect", "fixture_files", 0, "lacks"), ["toolName"], "lacks"),
        (("expect", "trace", 0, "output_equals"), 6, "trace"),
    ],
)
def test_a_broken_expectation_fails_and_is_named(path: tuple[Any, ...], value: Any, named: str, tmp_path: Path) -> None:
    with pytest.raises(Unmet, match=named):
        replaying.play(changed("fix-record-then-replay", path, value), tmp_path)


@pytest.mark.parametrize("path", [("tools",), ("fixtures", 0, "models"), ("expect", "fixture_files", 0, "sha")])
def test_what_the_runner_does_not_know_is_an_error_of_the_case(path: tuple[Any, ...], tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="know"):
        replaying.play(changed("fix-record-then-replay", path, 1), tmp_path)
