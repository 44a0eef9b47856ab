"""The served spec answers over HTTP as the serve cases say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance import cases
from tests.conformance.cases import HEAD, Case, known
from tests.conformance.expectations import Outcome, check
from tests.conformance.service import Service, refuses_to_start
from tests.conformance.stage import Stage, TellingModel
from tests.conftest import Processes
from workflows import advance
from workflows.spec.model import Spec
from workflows.world import World

INPUTS = HEAD | {"spec", "model", "http", "calls"}
SERVE = cases.of(cases.SERVE)
REFUSED = [{"start_fails": True}]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in SERVE if case["calls"] != REFUSED])
def test_the_service_answers_as_the_case_says(
    case: Case, folder: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(case["id"], case, INPUTS)
    with Stage(case) as stage:
        (folder / "spec.yaml").write_text(stage.spec, encoding="utf-8")
        if stage.tells:
            tell(stage, monkeypatch)
        for number, line in enumerate(stage.case["calls"]):
            service.play(f"calls[{number}]", line, service.expectations())
        check(stage.case["expect"], Outcome(requests=tuple(stage.tools.requests)))
        stage.surprises()


def tell(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the worker's world a model that reports what the case says (see `TellingModel`)."""
    world_for = advance.world_for

    def telling(spec: Spec) -> World:
        world = world_for(spec)
        return replace(world, model=TellingModel(stage, world.model))

    monkeypatch.setattr(advance, "world_for", telling)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in SERVE if case["calls"] == REFUSED])
def test_the_service_does_not_start_with_what_the_case_says(case: Case, tmp_path: Path, manage: Processes) -> None:
    known(case["id"], case, INPUTS)
    known("expect", case["expect"], ())
    spec = tmp_path / "spec.yaml"
    spec.write_text(case["spec"], encoding="utf-8")
    refuses_to_start(manage, spec)
