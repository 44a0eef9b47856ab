"""`serve` and `worker` as an operator meets them: real processes, real sockets, real signals (design 5.1)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from approvals.tokens import create_token
from tests.conftest import People, Processes
from tests.fakes_tools import FakeTools
from tests.surfaces.serve.conftest import Served, until
from tests.workbench import ASKING, PAYING, begin, write_spec
from workflows import beats
from workflows.models import Attempt, Run, Status

#: What a server gives its steps to end; whatever must not wait for that has to end long before.
DRAIN_SECONDS = 30
HANGING_SECONDS = 60

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.everyday("postgres")
def test_it_says_where_it_runs_and_answers_there_until_it_is_told_to_end(
    tmp_path: Path, serve: Callable[..., Served]
) -> None:
    write_spec(tmp_path, ASKING)
    (tmp_path / "broken.yaml").write_text("version: [")
    (tmp_path / "spec.yaml").write_text((tmp_path / "spec.yaml").read_text() + "  sloppy: true\n")
    served = serve(tmp_path)
    assert f"  clerk: {tmp_path / 'spec.yaml'}" in served.said
    assert served.get("/admin/login/")[0] == 200
    code, out, err = served.end()
    assert code == 0
    assert out.endswith("Stopped.\n")
    assert f"not served: {tmp_path / 'broken.yaml'}" in err
    assert "agent.sloppy" in err
    assert "Traceback" not in err


@pytest.mark.everyday("postgres")
def test_web_only_serves_the_admins_files_without_a_warning_and_works_on_nothing(
    tmp_path: Path, serve: Callable[..., Served]
) -> None:
    served = serve("--web-only", PYTHONWARNINGS="default")
    run = begin(write_spec(tmp_path, ASKING))
    status, body = served.get("/static/admin/css/base.css")
    assert (status, b"body" in body) == (200, True)
    assert served.get("/static/admin/css/base.css", Range="bytes=0-3") == (206, body[:4])
    assert served.get("/static/admin/css/nothing.css")[0] == 404
    code, _, err = served.end()
    assert code == 0
    assert "Warning" not in err
    assert Run.objects.get(pk=run.pk).status == Status.QUEUED
    assert beats.alive() == []


def test_its_workers_drive_runs_and_show_their_variables_by_name_only(
    tmp_path: Path, serve: Callable[..., Served]
) -> None:
    served = serve("--workers", 1, PAY_TOKEN="canary-2288")
    until(beats.alive)
    assert beats.lacking(["PAY_TOKEN"]) == ()
    assert "canary-2288" not in " ".join(*(one.environment for one in beats.alive()))
    run = begin(write_spec(tmp_path, ASKING))
    until(lambda: Run.objects.get(pk=run.pk).status == Status.AWAITING)
    assert served.end(signal.SIGINT)[0] == 0
    assert beats.alive() == []


def test_an_open_stream_is_ended_cleanly_and_does_not_hold_it_up(
    tmp_path: Path, serve: Callable[..., Served], people: People
) -> None:
    served = serve("--workers", 1)
    run = begin(write_spec(tmp_path, ASKING))
    until(lambda: Run.objects.get(pk=run.pk).status == Status.AWAITING)
    headers = {"Authorization": f"Bearer {create_token(people.approver, 'test')}"}
    with urlopen(Request(f"{served.url}/runs/{run.uuid}/events", headers=headers), timeout=60) as stream:
        assert b"awaiting_approval" in stream.readline() + stream.readline() + stream.readline()
        began = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        stream.read()  # a connection that is cut in the middle of the body would raise
    assert served.end()[0] == 0
    assert time.monotonic() - began < DRAIN_SECONDS / 2


def test_a_running_step_is_finished_before_it_ends(tmp_path: Path, serve: Callable[..., Served]) -> None:
    with FakeTools({"GET /invoice": {"json": {"amount": 3}, "hang": 2}}) as tools:
        served = serve("--workers", 1)
        run = begin(write_spec(tmp_path, PAYING, url=tools.url))
        until(lambda: tools.requests)
        code, _, err = served.end()
        assert (code, err) == (0, "")
        assert len(tools.requests) == 1
    assert Attempt.objects.get(run=run).outcome == "ok"
    run.refresh_from_db()
    assert (run.status, run.step_index, run.lease_until) == (Status.QUEUED, 1, None)


def test_a_step_that_outlasts_the_drain_is_named_and_kept_for_an_operator(
    tmp_path: Path, serve: Callable[..., Served]
) -> None:
    with FakeTools({"GET /invoice": {"json": {"amount": 3}, "hang": HANGING_SECONDS}}) as tools:
        served = serve("--workers", 1, KAMPONG_DRAIN_SECONDS="1")
        run = begin(write_spec(tmp_path, PAYING, url=tools.url))
        until(lambda: tools.requests)
        code, _, err = served.end(within=HANGING_SECONDS / 2)
    assert code == 0
    assert str(run.uuid) in err
    assert Attempt.objects.get(run=run).ended_at is None


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path, serve: Callable[..., Served]) -> None:
    with FakeTools({"GET /invoice": {"json": {"amount": 3}, "hang": HANGING_SECONDS}}) as tools:
        served = serve("--workers", 1)
        begin(write_spec(tmp_path, PAYING, url=tools.url))
        until(lambda: tools.requests)
        served.process.send_signal(signal.SIGINT)
        until(lambda: served.refuses())
        assert served.process.poll() is None
        assert served.end(signal.SIGINT, within=DRAIN_SECONDS / 2)[0] == 130


def test_a_worker_alone_drives_runs_and_ends_when_told(tmp_path: Path, manage: Processes) -> None:
    process = manage.start("worker")
    run = begin(write_spec(tmp_path, ASKING))
    until(lambda: Run.objects.get(pk=run.pk).status == Status.AWAITING)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out == "Working. Ctrl-C ends it.\nStopped.\n"


def test_two_servers_start_at_once_on_a_database_that_is_new(manage: Processes, fresh_database: str) -> None:
    started = [
        manage.start("serve", "--port", "0", "--workers", "1", env={"DATABASE_URL": fresh_database}) for _ in range(2)
    ]
    servers = [Served(process) for process in started]
    assert [served.get("/admin/login/")[0] for served in servers] == [200, 200]
    for served in servers:
        code, _, err = served.end()
        assert (code, err) == (0, "")
