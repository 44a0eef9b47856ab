"""Wrong use of any command exits 64 and touches nothing (design 5.1). No test here has a database."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.surfaces.cli.running import command, spec_at

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

KEY = "00000000-0000-4000-8000-000000000000"
RUN = ["run_spec", "SPEC", "--input", "x"]
WRONG = [
    ["run_spec"],
    ["run_spec", "SPEC"],
    ["run_spec", "--input", "x"],
    ["run_spec", "SPEC", "--input"],
    [*RUN, "another"],
    [*RUN, "--frob"],
    [*RUN, "--approve"],  # no option is abbreviated: this one least of all
    [*RUN, "--var"],
    [*RUN, "--var", "n"],
    [*RUN, "--var", "=1"],
    [*RUN, "--header", "=x"],
    [*RUN, "--header", "x"],
    [*RUN, "--timeout", "0"],
    [*RUN, "--timeout", "-5"],
    [*RUN, "--timeout", "1.5"],
    [*RUN, "--timeout", "1_000"],
    [*RUN, "--timeout", "٣"],
    [*RUN, "--timeout", "9" * 30],
    [*RUN, "--timeout"],
    [*RUN, "--tools", "dead"],
    [*RUN, "--models", "dead"],
    [*RUN, "--detach", "--approve-all"],
    [*RUN, "--detach", "--timeout", "5"],
    [*RUN, "--detach", "--tools", "record"],
    [*RUN, "--detach", "--models", "replay"],
    [*RUN, "--fixtures"],
    [*RUN, "--fixtures", ""],
    [*RUN, "--fixtures", "a\0b"],
    [*RUN, "--var", "unknown=1"],
    ["run_spec", "SPEC", "--input", "half a pair \ud800"],
    ["approvals"],
    ["approvals", "frob"],
    ["approvals", "list", "--frob"],
    ["approvals", "list", KEY],
    ["approvals", "show"],
    ["approvals", "approve"],
    ["approvals", "approve", KEY, "--reason"],
    ["approvals", "approve", KEY, "--rea", "x"],
    ["approvals", "reject", KEY, "another"],
    ["runs"],
    ["runs", "frob"],
    ["runs", "show"],
    ["runs", "cancel"],
    ["runs", "cancel", KEY, "--frob"],
    ["runs", "retry", KEY],
    ["runs", "retry", KEY, "--reason", " "],
    ["runs", "give_up", KEY],
    ["sweep", "another"],
    ["sweep", "--frob"],
    ["audit"],
    ["audit", "frob"],
    ["audit", "verify", "another"],
    ["api_token"],
    ["api_token", "lim", "--frob"],
    ["api_token", "lim", "--name", "n" * 101],
]


@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(words)[:60].encode("ascii", "replace").decode())
def test_wrong_use_exits_64_and_says_on_stderr_what_is_wrong(words: list[str], tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    told = command(*(spec if word == "SPEC" else word for word in words))
    assert told.code == 64
    assert told.out == ""
    assert told.err.strip()


def test_an_input_that_is_not_utf_8_is_named_as_that(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path), "--input", os.fsdecode(b"caf\xe9"))
    assert told.code == 64
    assert told.err.startswith("--input: the text is not UTF-8")


def test_wrong_use_is_text_on_stderr_even_with_json(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path), "--input", "x", "--json", "--timeout", "0")
    assert (told.code, told.out) == (64, "")


@pytest.mark.parametrize("name", ["run_spec", "approvals", "runs", "sweep", "audit", "api_token"])
def test_help_goes_to_stdout_and_exits_0(name: str) -> None:
    told = command(name, "--help")
    assert told.code == 0
    assert "usage" in told.out
    assert told.err == ""


@pytest.mark.parametrize("name", ["run_spec", "approvals", "runs", "sweep", "audit", "api_token"])
def test_the_version_is_ours(name: str) -> None:
    told = command(name, "--version")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"Kampong {declared} (Django ")
