"""Exit codes of real processes, with a database that is there, that is down, or none at all (design 5.1)."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, People, Processes
from tests.fakes_models import FakeModels
from tests.surfaces.cli.running import HEAD, spec_at
from workflows.engine import jsontext
from workflows.models import Run, Status
from workflows.runs import newest

DOWN = {"DATABASE_URL": "postgres://nobody:canary-password@127.0.0.1:1/none"}
once = pytest.mark.only("sqlite")  # these reach no database of the tests, so one run says all
KEY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def bare() -> Iterator[Processes]:
    """Processes for which every database is out of reach."""
    processes = Processes(os.environ | DOWN)
    yield processes
    processes.end()


@once
def test_a_run_needs_no_database_and_makes_none(bare: Processes, tmp_path: Path) -> None:
    told = bare.run("run_spec", spec_at(tmp_path), "--input", "x", "--json", text="y\nyes\n")
    assert told.returncode == 0, told.stderr
    local = {"DATABASE_URL": f"sqlite:///{tmp_path}/state.db"}
    told = bare.run("run_spec", spec_at(tmp_path), "--input", "x", env=local, text="y\nn: no\n")
    assert told.returncode == 2, told.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spec.yaml"]


@pytest.mark.parametrize(
    "words",
    [
        ["run_spec", "SPEC", "--input", "x", "--detach"],
        ["approvals", "list", "--as", "lim"],
        ["approvals", "approve", KEY, "--as", "lim"],
        ["runs", "show", KEY, "--as", "lim"],
        ["sweep"],
        ["audit", "verify"],
        ["audit", "export"],
        ["api_token", "lim"],
    ],
    ids=" ".join,
)
@once
def test_a_database_that_is_down_is_one_clear_line(bare: Processes, words: list[str], tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    told = bare.run(*(spec if word == "SPEC" else word for word in words))
    assert told.returncode == 2
    assert told.stdout == ""
    assert len(told.stderr.splitlines()) == 1
    assert "cannot be reached" in told.stderr
    assert "DATABASE_URL" in told.stderr
    assert "canary-password" not in told.stderr


@once
def test_a_database_without_tables_says_how_to_make_them(bare: Processes, tmp_path: Path) -> None:
    env = {"DATABASE_URL": f"sqlite:///{tmp_path}/empty.db"}
    for words in (["approvals", "list", "--as", "lim"], ["sweep"], ["audit", "verify"]):
        told = bare.run(*words, env=env)
        assert told.returncode == 2
        assert "python manage.py migrate" in told.stderr
        assert "Traceback" not in told.stderr


@pytest.mark.django_db(transaction=True)
def test_a_pause_stored_by_one_process_is_decided_by_others(manage: Processes, people: People, tmp_path: Path) -> None:
    stored = manage.run("run_spec", spec_at(tmp_path), "--input", "tea", "--detach", "--json")
    assert stored.returncode == 3, stored.stderr
    key = jsontext.loads(stored.stdout)["key"]
    env = {"KAMPONG_CLI_USER": "approver"}
    assert key in manage.run("approvals", "list", env=env).stdout
    paused = manage.run("approvals", "approve", key, "--json", env=env)
    assert paused.returncode == 3, paused.stderr
    following = jsontext.loads(paused.stdout)["state"]["pendingApproval"]["key"]
    assert manage.run("approvals", "approve", key, env=env).returncode == 2
    done = manage.run("approvals", "approve", following, "--reason", "fine", env=env)
    assert done.returncode == 0, done.stderr
    assert newest(Run.objects.order_by("id")[0]).status == Status.COMPLETED


@once
def test_ctrl_c_at_the_prompt_ends_with_130_and_one_line(bare: Processes, tmp_path: Path) -> None:
    process = bare.start("run_spec", spec_at(tmp_path), "--input", "x", stdin=subprocess.PIPE)
    assert process.stdout is not None
    while not process.stdout.readline().startswith("Approve?"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr is not None
    assert process.stderr.read().split() == ["Interrupted."]


@once
def test_ctrl_c_reaches_the_children_too_and_nobody_complains(tmp_path: Path) -> None:
    """As a terminal sends it: to the whole process group, while a model is being asked."""
    with FakeModels({"draft": {"hang": 60, "text": "late"}}) as models:
        text = HEAD.replace("http://127.0.0.1:9", models.url)
        # The query starts the child that evaluates expressions.
        text += '  workflow: [{ step: draft, action: write, query: "{{ $uppercase(input) }}" }]\n'
        command = [sys.executable, str(ROOT / "manage.py"), "run_spec", spec_at(tmp_path, text), "--input", "x"]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | DOWN,
        )
        try:
            _until(lambda: models.count("draft") == 1)
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert err.split() == ["Interrupted."]


@once
def test_at_a_terminal_json_shows_the_steps_on_stderr(tmp_path: Path) -> None:
    master, terminal = pty.openpty()
    command = [sys.executable, str(ROOT / "manage.py"), "run_spec", spec_at(tmp_path), "--input", "x"]
    try:
        ended = subprocess.run(
            [*command, "--json", "--approve-all"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=terminal,
            text=True,
            timeout=60,
            check=False,
            env=os.environ | DOWN,
        )
        seen = os.read(master, 65536).decode()
    finally:
        os.close(terminal)
        os.close(master)
    assert ended.returncode == 0
    assert jsontext.loads(ended.stdout)["success"] is True
    assert "first running..." in seen


@once
def test_a_terminal_without_the_characters_gets_escapes(bare: Processes, tmp_path: Path) -> None:
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    text = HEAD + '  workflow: [{ step: "zahlen für 茶", type: approval, message: "茶 für 3 €?" }]\n'
    spec = spec_at(tmp_path, text)
    shown = bare.run("run_spec", spec, "--input", "x", env=env, text="y\n")
    assert shown.returncode == 0, shown.stderr
    answer = bare.run("run_spec", spec, "--input", "x", "--json", env=env, text="y\n")
    assert answer.returncode == 0, answer.stderr
    assert list(jsontext.loads(answer.stdout)["output"]) == ["zahlen für 茶"]


def _until(condition: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
