"""What a run shows while it goes on: lines with times, a counter at terminals, nothing of it in the one object."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fakes_tools import FakeTools
from tests.served import until
from tests.surfaces.cli.running import HEAD, command, spec_at
from workflows.engine import jsontext
from workflows.management.terminal import duration

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

DOWN = {"DATABASE_URL": "postgres://nobody:nothing@127.0.0.1:1/none"}
FETCHING = (
    HEAD
    + """\
  tools: [{ name: fetch, action: http_request, method: GET, url: "URL/slow" }]
  workflow:
    - { step: ask, type: approval }
    - { step: get it, type: tool, tool: fetch }
"""
)


def timeless(line: str) -> str:
    """The line with its time as `N s`; what an answer took is told only where it took a while."""
    return re.sub(r"\d+\.\d s( \(answered after .*\)|, .* for answers)?$", "N s", line)


def test_each_step_has_a_line_when_it_starts_and_one_when_it_ended_and_the_run_a_total(tmp_path: Path) -> None:
    with FakeTools({"GET /slow": {"json": {}}}) as tools:
        told = command("run_spec", spec_at(tmp_path, FETCHING.replace("URL", tools.url)), "--input", "x", text="y\n")
    assert told.code == 0, told.err
    kinds = [timeless(line) for line in told.out.splitlines() if not line.startswith(("  |", ">"))]
    assert kinds[0] == "ask running..."
    ended = ["ask completed in N s", "get it running...", "get it completed in N s", "2 steps in N s", "Run completed."]
    assert kinds[3:8] == ended
    assert "\r" not in told.out


def test_a_step_that_failed_says_so_before_the_reason(tmp_path: Path) -> None:
    text = HEAD + "  workflow: [{ step: go, type: tool, tool: nowhere }]\n"
    told = command("run_spec", spec_at(tmp_path, text), "--input", "x")
    assert [timeless(line) for line in told.out.splitlines()] == [
        "go running...",
        "go failed after N s",
        "1 step in N s",
    ]
    assert told.err.splitlines()[-1].startswith("Run failed: ")


def test_a_wait_before_the_next_attempt_is_told(tmp_path: Path) -> None:
    retrying = FETCHING.replace('URL/slow" }', 'URL/slow", retry: { max: 1, base_ms: 100 } }')
    with FakeTools({"GET /slow": [{"status": 503}, {"json": {}}]}) as tools:
        words = ["run_spec", spec_at(tmp_path, retrying.replace("URL", tools.url)), "--input", "x", "--approve-all"]
        told = command(*words)
    assert told.code == 0, told.err
    assert "get it running...\nget it waits 0.1 s before the next attempt\nget it completed in " in told.out


def test_a_wait_for_a_slot_is_told_in_words(tmp_path: Path) -> None:
    paced = FETCHING.replace('URL/slow" }', 'URL/slow", pace: { rps: 2 }, retry: { max: 1, base_ms: 1 } }')
    with FakeTools({"GET /slow": [{"status": 503}, {"json": {}}]}) as tools:
        words = ["run_spec", spec_at(tmp_path, paced.replace("URL", tools.url)), "--input", "x", "--approve-all"]
        told = command(*words)
    assert told.code == 0, told.err
    assert re.search(r"running\.\.\.\nget it waits 0\.\d s for its turn \(pace\)\nget it completed in ", told.out)


def test_a_rejected_step_says_so(tmp_path: Path) -> None:
    text = HEAD + "  workflow: [{ step: go, type: approval }]\n"
    told = command("run_spec", spec_at(tmp_path, text), "--input", "x", text="n: no\n")
    assert "\ngo rejected after " in told.out
    assert told.err == "Run rejected: no\n"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0.0 s"), (0.44, "0.4 s"), (59.9, "59.9 s"), (59.96, "1 min 0 s"), (125, "2 min 5 s"), (7260, "2 h 1 min")],
)
def test_durations_are_short(seconds: float, words: str) -> None:
    assert duration(seconds) == words


# At a terminal -----------------------------------------------------------------------------------------------


@contextmanager
def terminal() -> Iterator[tuple[int, list[str]]]:
    """A terminal's descriptor for a process, and what was shown on it so far."""
    master, slave = pty.openpty()
    shown: list[str] = []

    def read() -> None:
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # every process has closed it
                return
            shown.append(piece.decode())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield slave, shown
    finally:
        os.close(slave)
        reader.join(30)
        os.close(master)


def test_a_long_step_is_counted_at_a_terminal_and_the_counter_is_wiped(tmp_path: Path) -> None:
    with FakeTools({"GET /slow": {"json": {}, "hang": 6}}) as tools, terminal() as (screen, shown):
        words = ["run_spec", spec_at(tmp_path, FETCHING.replace("URL", tools.url)), "--input", "x", "--approve-all"]
        ended = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *words],
            stdin=subprocess.DEVNULL,
            stdout=screen,
            stderr=subprocess.PIPE,
            text=True,
            timeout=90,
            check=False,
            env=os.environ | DOWN,
        )
        assert ended.returncode == 0, ended.stderr
        until(lambda: "Run completed." in "".join(shown))
    text = "".join(shown)
    counted = re.search(r"get it running\.\.\.\r\n(\r  \d+ s *)+\r +\rget it completed in \d+\.\d s\r\n", text)
    assert counted, text
    assert text.count("\x1b") == 0


def test_ctrl_c_with_json_still_says_what_was_done(tmp_path: Path) -> None:
    with FakeTools({"GET /slow": {"json": {}, "hang": 60}}) as tools:
        spec = spec_at(tmp_path, FETCHING.replace("URL", tools.url))
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "run_spec", spec, "--input", "x", "--json", "--approve-all"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | DOWN,
        )
        try:
            until(lambda: tools.requests, 60)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert jsontext.loads(out) == {
        "success": False,
        "status": "interrupted",
        "error": "Interrupted.",
        "trace": [{"step": "ask", "status": "completed", "output": {"approved": True}}],
    }
    assert "Traceback" not in err


# Where nobody reads -----------------------------------------------------------------------------------------


def _shell(script: str, spec: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """A line of the shell in which `RUN` is `run_spec SPEC --input x`; its last word is the command's exit code."""
    run = f"{sys.executable} {ROOT / 'manage.py'} run_spec {spec} --input x"
    return subprocess.run(
        ["bash", "-c", script.replace("RUN", run)],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | DOWN,
    )


@pytest.mark.parametrize("option", ["", "--json"])
def test_a_reader_that_left_changes_neither_the_run_nor_its_exit_code(option: str, tmp_path: Path) -> None:
    with FakeTools({"GET /slow": {"status": 404}}) as tools:
        spec = spec_at(tmp_path, FETCHING.replace("URL", tools.url))
        told = _shell(f"RUN {option} --approve-all | true; exit ${{PIPESTATUS[0]}}", spec)
        assert told.returncode == 2
        assert len(tools.requests) == 1
    assert "Traceback" not in told.stderr


def test_a_question_that_nobody_can_see_is_rejected(tmp_path: Path) -> None:
    with FakeTools({"GET /slow": {"json": {}}}) as tools:
        spec = spec_at(tmp_path, FETCHING.replace("URL", tools.url))
        told = _shell("RUN > /dev/full; exit $?", spec, "y\n")
        assert tools.requests == []
    assert told.returncode == 2
    assert "cannot be shown" in told.stderr


@pytest.mark.parametrize("option", ["", "--json"])
def test_a_full_disk_is_one_line_and_a_refusal(option: str, tmp_path: Path) -> None:
    told = _shell(f"RUN {option} --approve-all > /dev/full; exit $?", spec_at(tmp_path))
    assert told.returncode == 2
    assert "The result cannot be written: No space left on device." in told.stderr
    assert "Traceback" not in told.stderr


def test_closed_streams_change_nothing(tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    silent = _shell("RUN --approve-all >&- 2>&-; exit $?", spec)
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")
    told = _shell("RUN --approve-all --json 2>&-; exit $?", spec)
    assert told.returncode == 0
    assert jsontext.loads(told.stdout)["success"] is True
