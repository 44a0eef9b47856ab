"""The conformance cases of the command line, each in a process of its own that has no database to reach."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.fakes_models import FakeModels
from workflows.engine import jsontext

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

CASES = {
    case["id"]: case
    for case in yaml.safe_load((ROOT / "tests" / "cases" / "engine-cases.yaml").read_text(encoding="utf-8"))
    if case["family"] == "cli"
}
#: The cases' name of a command, and ours.
NAMES = {"run": "run_spec"}


@pytest.fixture
def models(request: pytest.FixtureRequest) -> Iterator[FakeModels]:
    with FakeModels(CASES[request.node.callspec.params["name"]].get("model")) as models:
        yield models


@pytest.mark.parametrize("name", sorted(CASES))
def test_case(name: str, models: FakeModels, tmp_path: Path) -> None:
    case = CASES[name]
    ended = _run(case, models, tmp_path)
    expected = case["expect"]
    assert ended.returncode == expected["exit"], ended.stderr
    assert "Traceback" not in ended.stderr
    assert models.failures == []
    _check_stdout(expected, ended.stdout)
    for words in expected.get("stderr_mentions", ()):
        assert words.lower() in ended.stderr.lower()


def _run(case: Mapping[str, Any], models: FakeModels, folder: Path) -> subprocess.CompletedProcess[str]:
    spec = folder / "spec.yaml"
    if "spec" in case:
        # The cases name no server for the model; here it is the scripted one.
        text = case["spec"].replace("name: test-model }", f'name: test-model, base_url: "{models.url}" }}')
        spec.write_text(text, encoding="utf-8")
    places = {"SPEC": str(spec), "NOWHERE": str(folder / "nowhere.yaml")}
    first, *rest = case["cli"]["args"]
    words = [NAMES.get(first, first), *(places.get(word, word) for word in rest)]
    env = dict(os.environ, DATABASE_URL="postgres://nobody:none@127.0.0.1:1/none", **case.get("env", {}))
    command = [sys.executable, str(ROOT / "manage.py"), *words]
    return subprocess.run(
        command, input=case["cli"]["stdin"], env=env, capture_output=True, text=True, timeout=60, check=False
    )


def _check_stdout(expected: Mapping[str, Any], stdout: str) -> None:
    if "stdout_lines" in expected:
        assert len(stdout.splitlines()) == expected["stdout_lines"]
    if "stdout_json" in expected or "stdout_json_has" in expected:
        answer = jsontext.loads(stdout)
        _check_subset(expected.get("stdout_json", {}), answer)
        assert set(expected.get("stdout_json_has", ())) <= set(answer)
    for words in expected.get("stdout_mentions", ()):
        assert words in stdout
    for words in expected.get("stdout_lacks", ()):
        assert words not in stdout


def _check_subset(expected: Any, actual: Any) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in actual
            _check_subset(value, actual[key])
    elif isinstance(expected, list):
        assert len(expected) == len(actual)
        for left, right in zip(expected, actual, strict=True):
            _check_subset(left, right)
    else:
        assert jsontext.same(expected, actual), (expected, actual)
