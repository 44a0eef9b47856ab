"""Runs in memory do what the engine cases say, one test each; no database is there."""

from __future__ import annotations

import pytest

from tests.conformance import cases, in_memory
from tests.conformance.cases import Case


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases.of(*cases.IN_MEMORY)])
def test_a_run_in_memory_does_what_the_case_says(case: Case) -> None:
    in_memory.play(case)
