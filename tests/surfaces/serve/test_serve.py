"""`serve` and `worker` as an operator meets them: real processes, real sockets, real signals (design 5.1)."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Processes
from tests.fakes_tools import FakeTools
from tests.workbench import ASKING, PAYING, begin, write_spec
from workflows import beats
from workflows.models import Attempt, Run, Status

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = re.compile(r"runs at (http://127\.0\.0\.1:\d+)/")


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait for a condition; fail when it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


class Served:
    """A `serve` that runs, and what it said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            self.said.append(line.rstrip())
            if line.startswith("Ctrl-C"):
                break
        found = ADDRESS.search("\n".join(self.said))
        assert found, (self.said, process.stderr.read() if process.stderr else "")
        self.url = found[1]

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers), timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def end(self, how: signal.Signals = signal.SIGTERM, within: float = 15) -> tuple[int, str, str]:
        """Send the signal; exit code and what was said since the start."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=within)
        return self.process.returncode, out, err


@pytest.fixture
def serve(manage: Processes) -> Callable[..., Served]:
    """Starts `serve` on a free port."""

    def start(*arguments: object, **env: str) -> Served:
        words = [str(argument) for argument in arguments]
        return Served(manage.start("serve", "--port", "0", *words, env={"PYTHONWARNINGS": "default"} | env))

    return start


def test_it_says_where_it_runs_and_answers_there_until_it_is_told_to_end(
    tmp_path: Path, serve: Callable[..., Served]
) -> None:
    write_spec(tmp_path, ASKING)
    (tmp_path / "broken.yaml").write_text("version: [")
    served = serve(tmp_path)
    assert f"  clerk: {tmp_path / 'spec.yaml'}" in served.said
    assert served.get("/admin/login/")[0] == 200
    code, out, err = served.end()
    assert code == 0
    assert out.endswith("Stopped.\n")
    assert f"not served: {tmp_path / 'broken.yaml'}" in err
    assert "Traceback" not in err


def test_the_admins_files_are_served_without_a_warning(serve: Callable[..., Served]) -> None:
    served = serve("--web-only")
    status, body = served.get("/static/admin/css/base.css")
    assert (status, b"body" in body) == (200, True)
    assert served.get("/static/admin/css/base.css", Range="bytes=0-3") == (206, body[:4])
    assert served.get("/static/admin/css/nothing.css")[0] == 404
    code, _, err = served.end()
    assert code == 0
    assert "Warning" not in err


def test_ctrl_c_ends_it_as_well(serve: Callable[..., Served]) -> None:
    code, out, _ = serve().end(signal.SIGINT)
    assert code == 0
    assert out.endswith("Stopped.\n")


def test_its_workers_drive_runs_and_show_that_they_live(tmp_path: Path, serve: Callable[..., Served]) -> None:
    served = serve("--workers", 1)
    until(beats.alive)
    run = begin(write_spec(tmp_path, ASKING))
    until(lambda: Run.objects.get(pk=run.pk).status == Status.AWAITING)
    assert served.end()[0] == 0
    assert beats.alive() == []


def test_web_only_works_on_nothing(tmp_path: Path, serve: Callable[..., Served]) -> None:
    served = serve("--web-only")
    run = begin(write_spec(tmp_path, ASKING))
    assert served.get("/admin/login/")[0] == 200
    assert served.end()[0] == 0
    assert Run.objects.get(pk=run.pk).status == Status.QUEUED
    assert beats.alive() == []


def test_a_running_step_is_finished_before_it_ends(tmp_path: Path, serve: Callable[..., Served]) -> None:
    with FakeTools({"GET /invoice": {"json": {"amount": 3}, "hang": 3}}) as tools:
        served = serve("--workers", 1)
        run = begin(write_spec(tmp_path, PAYING, url=tools.url))
        until(lambda: tools.requests)
        code, _, err = served.end()
        assert code == 0, err
        assert len(tools.requests) == 1
    attempt = Attempt.objects.get(run=run)
    assert attempt.outcome == "ok"


def test_a_step_that_outlasts_the_drain_is_named_and_kept_for_an_operator(
    tmp_path: Path, serve: Callable[..., Served]
) -> None:
    with FakeTools({"GET /invoice": {"json": {"amount": 3}, "hang": 30}}) as tools:
        served = serve("--workers", 1, KAMPONG_DRAIN_SECONDS="1")
        run = begin(write_spec(tmp_path, PAYING, url=tools.url))
        until(lambda: tools.requests)
        code, _, err = served.end(within=10)
    assert code == 0
    assert str(run.uuid) in err
    assert Attempt.objects.get(run=run).ended_at is None


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path, serve: Callable[..., Served]) -> None:
    with FakeTools({"GET /invoice": {"json": {"amount": 3}, "hang": 30}}) as tools:
        served = serve("--workers", 1)
        begin(write_spec(tmp_path, PAYING, url=tools.url))
        until(lambda: tools.requests)
        served.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert served.process.poll() is None
        assert served.end(signal.SIGINT, within=3)[0] == 130


def test_a_port_in_use_is_one_clear_line(manage: Processes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = manage.run("serve", "--port", str(taken.getsockname()[1]))
    assert ended.returncode == 2
    assert "it is in use" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("content", [None, "version: [", ASKING.format(agent_id="'has blank'")])
def test_a_named_spec_that_cannot_be_served_ends_it_before_it_begins(
    tmp_path: Path, manage: Processes, content: str | None
) -> None:
    path = tmp_path / "spec.yaml"
    if content is not None:
        path.write_text(content)
    ended = manage.run("serve", str(path))
    assert ended.returncode == 1
    assert str(path) in ended.stderr
    assert ended.stdout == ""


def test_a_missing_folder_is_as_bad_as_a_missing_file(tmp_path: Path, manage: Processes) -> None:
    ended = manage.run("serve", str(tmp_path / "nowhere"))
    assert ended.returncode == 1
    assert "nowhere" in ended.stderr


@pytest.mark.parametrize("words", [("--port", "x"), ("--port", "70000"), ("--workers", "0"), ("--what",), ("--host",)])
def test_wrong_use_is_64_with_the_reason_on_stderr(manage: Processes, words: tuple[str, ...]) -> None:
    ended = manage.run("serve", *words)
    assert ended.returncode == 64
    assert ended.stderr
    assert ended.stdout == ""


def test_a_worker_alone_drives_runs_and_ends_when_told(tmp_path: Path, manage: Processes) -> None:
    process = manage.start("worker")
    run = begin(write_spec(tmp_path, ASKING))
    until(lambda: Run.objects.get(pk=run.pk).status == Status.AWAITING)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=15)
    assert (process.returncode, err) == (0, "")
    assert out == "Working. Ctrl-C ends it.\nStopped.\n"


def test_recover_says_what_it_did(tmp_path: Path, manage: Processes) -> None:
    begin(write_spec(tmp_path, ASKING))
    assert manage.run("recover").stdout == "Nothing to recover.\n"
    Run.objects.update(queued_at="2020-01-01T00:00:00Z")
    assert "1 run sent again" in manage.run("recover").stdout


def test_the_variables_it_has_are_shown_by_name_and_never_by_value(serve: Callable[..., Served]) -> None:
    served = serve("--workers", 1, PAY_TOKEN="canary-2288")
    until(beats.alive)
    assert beats.lacking(["PAY_TOKEN"]) == ()
    assert "canary-2288" not in json.dumps([sorted(one.environment) for one in beats.alive()])
    assert served.end()[0] == 0


def test_two_servers_start_at_once_on_a_database_that_is_new(
    tmp_path: Path, manage: Processes, fresh_database: str
) -> None:
    started = [
        manage.start("serve", "--port", "0", "--workers", "1", env={"DATABASE_URL": fresh_database}) for _ in range(2)
    ]
    servers = [Served(process) for process in started]
    assert [served.get("/admin/login/")[0] for served in servers] == [200, 200]
    for served in servers:
        code, _, err = served.end()
        assert (code, err) == (0, "")


def test_without_migrations_it_says_which_command_is_missing(manage: Processes, fresh_database: str) -> None:
    for command in (("serve", "--no-migrate", "--port", "0"), ("worker",), ("recover",)):
        ended = manage.run(*command, env={"DATABASE_URL": fresh_database})
        assert ended.returncode == 2
        assert "python manage.py migrate" in ended.stderr
        assert len(ended.stderr.strip().splitlines()) == 1


def test_a_database_that_is_not_there_is_one_clear_line(manage: Processes) -> None:
    ended = manage.run("recover", env={"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none"})
    assert ended.returncode == 2
    assert ended.stderr.startswith("The database cannot be reached")
    assert len(ended.stderr.strip().splitlines()) == 1


@pytest.fixture
def fresh_database(tmp_path: Path, process_env: dict[str, str]) -> Iterator[str]:
    """The URL of an empty database beside the test's own."""
    url = process_env["DATABASE_URL"]
    if url.startswith("sqlite"):
        yield f"sqlite:///{tmp_path / 'fresh.db'}"
        return
    import psycopg

    name = f"fresh_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            yield re.sub(r"/[^/?]+(\?|$)", rf"/{name}\1", url)
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
