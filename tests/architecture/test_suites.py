"""Suites that run once must not know any database, and every suite runs where it should."""

from __future__ import annotations

import ast

import pytest

from tests.conftest import ROOT
from tests.run import APART, DATABASES, NO_DATABASE, WITHOUT_DATABASE, plan

FIXTURES = {"db", "transactional_db", "process_env", "manage", "people", "live_server"}
MARK = "django_" + "db"
SUITES = {str(folder.relative_to(ROOT)) for folder in (ROOT / "tests").iterdir() if list(folder.rglob("test_*.py"))}


def test_suites_that_run_once_use_no_database() -> None:
    found = []
    for folder in WITHOUT_DATABASE:
        for file in sorted((ROOT / folder).glob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                marked = isinstance(node, ast.Attribute) and node.attr == MARK
                asked = isinstance(node, ast.arg) and node.arg in FIXTURES
                if marked or asked:
                    found.append(f"{file.relative_to(ROOT)}: {ast.unparse(node)}")
    assert not found


#: Whatever touches the claim, the store, transactions, races or crashes runs on both databases every day.
ALWAYS_BOTH = {"approvals", "conformance", "crash", "races", "scenarios", "statestore", "triggers", "unattended"}


def test_what_touches_the_database_runs_on_both_every_day() -> None:
    found = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.everyday":
                found[str(file.relative_to(ROOT))] = ast.literal_eval(node.args[0])
    assert found, "the search finds nothing"
    assert set(found.values()) <= set(DATABASES)
    assert [name for name in found if name.split("/")[1] in ALWAYS_BOTH] == []


def suites_of(words: list[str]) -> set[str]:
    """What pytest collects under these arguments: the folders named, or all, without those that are ignored."""
    ignored = {word.removeprefix("--ignore=") for word in words if word.startswith("--ignore=")}
    return ({word for word in words if word in SUITES} or SUITES) - ignored


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("arguments", [[], ["-k", "decide"], ["-x"]])
def test_each_suite_runs_on_both_databases_or_once(
    arguments: list[str], alone: bool, given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAMPONG_TEST_POSTGRES_URL", raising=False)
    if given:
        monkeypatch.setenv("KAMPONG_TEST_POSTGRES_URL", "postgres://127.0.0.1/one")
    planned = plan(arguments, alone=alone)
    apart = [] if alone else ["sqlite"] if given else [*DATABASES]
    assert set(planned) == {*DATABASES, *(f"{name} ({APART})" for name in apart)} | (set() if alone else {NO_DATABASE})
    assert all(words[: len(arguments)] == arguments for words in planned.values())
    for suite in SUITES:
        # The run of what lies apart is one of its database.
        runs = [name.partition(" (")[0] for name, words in planned.items() if suite in suites_of(words)]
        once = [WITHOUT_DATABASE[suite] if alone else NO_DATABASE] if suite in WITHOUT_DATABASE else list(DATABASES)
        assert runs == once, suite


@pytest.mark.parametrize("named", ["tests/engine", "tests/engine/test_vars.py", "tests/engine/test_vars.py::test_x"])
def test_what_the_command_line_names_runs_alone(named: str) -> None:
    planned = plan([named], alone=False)
    assert list(planned) == list(DATABASES), "nothing else may be collected beside it"
    assert [name for name, words in planned.items() if "--ignore=tests/engine" not in words] == ["sqlite"]
