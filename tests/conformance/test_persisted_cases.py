"""Approvals that outlive their process do what the persisted cases say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tests.conformance import cases
from tests.conformance.cases import Case
from tests.conformance.deciding import FreshProcesses
from tests.conformance.script import Script
from tests.conformance.service import Service
from tests.conformance.stage import Stage
from tests.conftest import Clock

PERSISTED = cases.of(cases.PERSISTED)


def set_environment(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all names that the spec refers to, those of the case have a value and the others have none."""
    for name in re.findall(r"\$\{(\w+)\}", case["spec"]):
        monkeypatch.delenv(name, raising=False)
    for name, text in (case.get("env") or {}).items():
        monkeypatch.setenv(name, text)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in PERSISTED if "surface" not in case])
def test_a_pause_is_resumed_by_key_as_the_case_says(
    case: Case,
    folder: Path,
    everybody: User,
    clock: Clock,
    elsewhere: FreshProcesses,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_environment(case, monkeypatch)
    with Stage(case) as stage:
        Script(stage, folder, everybody, clock, elsewhere).play()


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in PERSISTED if "surface" in case])
def test_a_pause_is_resumed_over_http_as_the_case_says(
    case: Case,
    folder: Path,
    everybody: User,
    clock: Clock,
    elsewhere: FreshProcesses,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert case["surface"] == "serve"
    set_environment(case, monkeypatch)
    with Stage(case) as stage:
        Script(stage, folder, everybody, clock, elsewhere, service).play()
