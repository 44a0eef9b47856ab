"""The conformance cases for loading a spec, one test each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from workflows.engine.vars import VarsError, resolve
from workflows.spec.errors import SpecError
from workflows.spec.load import load

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent.parent / "cases" / "spec-cases.yaml").read_text(encoding="utf-8")
)
OF_THE_FORMAT = {"knowledge_base_not_executed", "legacy_condition_syntax", "legacy_placeholder_syntax"}


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in cases]


def at_or_below(error: SpecError, path: str | None) -> bool:
    if path is None:
        return error.path == ()
    return error.where == path or error.where.startswith(f"{path}.")


@pytest.mark.parametrize("case", named([case for case in CASES if case["valid"]]))
def test_a_valid_case_loads_with_exactly_its_notes(case: dict[str, Any]) -> None:
    loaded = load(case["yaml"])

    assert loaded.errors == ()
    assert loaded.spec is not None
    assert [note.code for note in loaded.notes if note.code in OF_THE_FORMAT] == case["warnings"]


@pytest.mark.parametrize("case", named([case for case in CASES if not case["valid"]]))
def test_an_invalid_case_says_where_and_why(case: dict[str, Any]) -> None:
    loaded = load(case["yaml"])

    assert loaded.spec is None
    located = [error for error in loaded.errors if at_or_below(error, case["error_path"])]
    assert located, [str(error) for error in loaded.errors]
    texts = [f"{error.where} {error.message}".lower() for error in located]
    assert any(all(word.lower() in text for word in case["error_mentions"]) for text in texts), texts


@pytest.mark.parametrize("case", named([case for case in CASES if case.get("resolve")]))
def test_the_vars_of_a_case_get_their_values_or_name_what_is_missing(case: dict[str, Any]) -> None:
    spec, wanted = load(case["yaml"]).spec, case["resolve"]
    assert spec is not None
    env = {name: text or None for name, text in wanted["env"].items()}

    if wanted["values"] is not None:
        assert resolve(spec, wanted["overrides"], env) == wanted["values"]
        return
    with pytest.raises(VarsError) as failure:
        resolve(spec, wanted["overrides"], env)
    blamed = {problem.split()[0].rstrip(":,").removeprefix("vars.") for problem in failure.value.problems}
    assert blamed == set(wanted["error_vars"])
    assert all(word in str(failure.value) for word in wanted["error_mentions"])
