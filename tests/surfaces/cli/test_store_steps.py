"""`run_spec` and `doctor` with steps on the store: on the project's database, opened only when a step needs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import Told, command
from tests.workbench import work
from tests.workflows.storing import (
    ANSWERS,
    ASK_STEP,
    CLOSE_STEP,
    FAIL_STEP,
    LOOK_STEP,
    ONCE_STEP,
    OPEN_STEP,
    POST_STEP,
    a_spec,
    done,
    keys,
    output,
)
from workflows.models import Run
from workflows.registry import SpecFile

stored = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as service:
        yield service


def run(spec: SpecFile, *more: str, key: str = "k", text: str = "") -> Told:
    return command("run_spec", str(spec.path), "--input", key, "--json", *more, text=text)


@stored
def test_a_command_and_a_worker_know_of_each_others_keys(tmp_path: Path, tools: FakeTools) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, POST_STEP, url=tools.url)
    first = run(spec)
    assert (first.code, first.object()["output"]["first"]) == (0, {"first": True}), first
    holder = keys()["once:k"]["run"]
    for repeat in (run(spec).object()["output"], {"first": output(done(spec), "first")}):
        assert repeat == {"first": {"first": False, "run": holder}}
    other = done(spec, "l")
    assert run(spec, key="l").object()["output"] == {"first": {"first": False, "run": str(other.uuid)}}
    assert len(tools.requests) == 2
    assert Run.objects.count() == 2, "nothing is stored of the commands' own runs"


@stored
def test_an_incident_is_opened_by_a_command_and_closed_by_a_worker(tmp_path: Path) -> None:
    opened = run(a_spec(tmp_path, OPEN_STEP)).object()["output"]["open"]
    assert opened["opened"] is True
    assert run(a_spec(tmp_path, OPEN_STEP)).object()["output"]["open"] == opened | {"opened": False}
    closed = output(done(a_spec(tmp_path, CLOSE_STEP)), "close")
    assert closed == {"closed": True, "incident": opened["incident"]}
    assert run(a_spec(tmp_path, CLOSE_STEP)).object()["output"] == {"close": {"closed": False}}


@stored
@pytest.mark.parametrize(
    ("steps", "words", "kept"),
    [
        ((LOOK_STEP, FAIL_STEP), "", False),
        ((POST_STEP, FAIL_STEP), "", True),
        ((ASK_STEP,), "n: no\n", True),
        ((LOOK_STEP,), "", True),
    ],
)
def test_the_key_of_a_run_that_failed_and_did_nothing_is_free(
    tmp_path: Path, tools: FakeTools, steps: tuple[str, ...], words: str, kept: bool
) -> None:
    told = run(a_spec(tmp_path, ONCE_STEP, *steps, url=tools.url), text=words)
    assert told.code == (0 if steps == (LOOK_STEP,) else 2), told
    assert ("once:k" in keys()) is kept


@stored
def test_a_step_that_keeps_its_key_keeps_it(tmp_path: Path, tools: FakeTools) -> None:
    step = ONCE_STEP.replace("ttl: 1d", "ttl: 1d, release_on_failure: false")
    assert run(a_spec(tmp_path, step, FAIL_STEP, url=tools.url)).code == 2
    assert "once:k" in keys()


@stored
def test_a_bad_key_is_told_with_the_limit(tmp_path: Path) -> None:
    told = run(a_spec(tmp_path, ONCE_STEP), key="x" * 401)
    assert told.code == 2
    assert "takes 401 bytes; a key has at most 400" in told.object()["error"]


@stored
def test_an_agent_id_that_is_too_long_for_the_store_fails_the_step(tmp_path: Path) -> None:
    """`run_spec` takes any agent id; the store says what it cannot keep."""
    file = a_spec(tmp_path, ONCE_STEP).path
    file.write_text(file.read_text(encoding="utf-8").replace("id: clerk", f"id: {'c' * 201}"), encoding="utf-8")
    told = command("run_spec", str(file), "--input", "k", "--json")
    assert told.code == 2
    assert 'the store refused the key "k"' in told.object()["error"]


@stored
def test_detached_it_is_a_run_like_the_servers(tmp_path: Path) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, ASK_STEP)
    waiting = run(spec, "--detach")
    assert waiting.code == 3, waiting
    assert keys() == {"once:k": {"run": waiting.object()["id"]}}
    repeat = run(spec, "--detach")
    assert repeat.code == 0
    assert repeat.object()["output"] == {"first": {"first": False, "run": waiting.object()["id"]}}
    work()
    assert keys() == {"once:k": {"run": waiting.object()["id"]}}


@stored
def test_a_replay_takes_keys_and_calls_nobody(tmp_path: Path, tools: FakeTools) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, POST_STEP, url=tools.url)
    assert run(spec, "--tools", "record").code == 0
    replayed = run(spec, "--tools", "replay", key="l").object()["output"]
    assert replayed == {"first": {"first": True}, "post": {"done": True}}
    assert run(spec, "--tools", "replay").object()["output"]["first"]["first"] is False
    assert len(tools.requests) == 1
    assert keys().keys() == {"once:k", "once:l"}


@stored
def test_the_doctor_finds_the_database(tmp_path: Path) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, "{step: shut, type: close, key: k}")
    checks = command("doctor", str(spec.path), "--json").object()["checks"]
    (found,) = [check for check in checks if check["area"] == "database"]
    assert found == {
        "status": "pass",
        "area": "database",
        "message": 'steps "first", "shut": the database is there',
    }
    plain = a_spec(tmp_path, ASK_STEP)
    assert '"database"' not in command("doctor", str(plain.path), "--json").out


@stored
def test_the_doctor_sees_a_key_that_reads_a_later_step(tmp_path: Path) -> None:
    late = "{step: early, type: open, key: \"{{ look.seen ? 'a' : 'b' }}\", value: {of: [\"{{ look }}\"]}}"
    spec = a_spec(tmp_path, late, LOOK_STEP)
    assert 'step "early" reads the output of "look", which runs later' in command("doctor", str(spec.path)).out


# Without a database ------------------------------------------------------------------------------------------

once = pytest.mark.only("sqlite")  # these bring their own, so one run says all


def elsewhere(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, with this database."""
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@once
def test_no_database_is_opened_before_a_step_needs_it(tmp_path: Path, tools: FakeTools) -> None:
    spec = a_spec(tmp_path, FAIL_STEP, ONCE_STEP, url=tools.url)
    url = f"sqlite:///{tmp_path / 'none.db'}"
    told = elsewhere(url, "run_spec", str(spec.path), "--input", "k")
    assert (told.returncode, "404" in told.stderr) == (2, True), told
    warned = elsewhere(url, "doctor", str(spec.path), "--json")
    assert "there is no database here yet" in warned.stdout
    assert not (tmp_path / "none.db").exists()


@once
@pytest.mark.parametrize(
    ("url", "why"),
    [("sqlite:///FOLDER/empty.db", "no such table"), ("postgres://nobody@127.0.0.1:9/none", "refused")],
)
def test_a_database_that_cannot_be_used_fails_the_step_with_the_next_move(tmp_path: Path, url: str, why: str) -> None:
    spec = a_spec(tmp_path, ONCE_STEP)
    (tmp_path / "empty.db").touch()
    url = url.replace("FOLDER", str(tmp_path))
    told = elsewhere(url, "run_spec", str(spec.path), "--input", "k", "--json")
    answer: dict[str, Any] = json.loads(told.stdout)
    assert (told.returncode, answer["status"]) == (2, "failed"), told
    assert answer["error"].startswith('Step "first": the store refused the key "k": the project\'s database cannot be')
    assert why in answer["error"]
    assert "check DATABASE_URL, and that it is migrated" in answer["error"]
    checks = json.loads(elsewhere(url, "doctor", str(spec.path), "--json").stdout)["checks"]
    (database,) = [one for one in checks if one["area"] == "database"]
    assert (database["status"], why in database["message"]) == ("fail", True), database
