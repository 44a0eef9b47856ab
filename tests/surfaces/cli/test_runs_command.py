"""`runs`: look at runs and operate them from a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.models import AuditEntry
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import command
from tests.workbench import ASKING, HEAD, begin, to_pause, work, write_spec
from workflows.beats import beat, leave
from workflows.management.following import rest_of, to_rest
from workflows.models import Run, Status
from workflows.runs import newest
from workflows.times import rfc3339

pytestmark = pytest.mark.django_db(transaction=True)

UNKNOWN = "00000000-0000-4000-8000-000000000000"
OPERATOR = ("--as", "operator")
FETCHING = (
    HEAD
    + """\
  tools: [{{ name: fetch, action: http_request, method: GET, url: "{url}/items" }}]
  workflow: [{{ step: fetch, type: tool, tool: fetch }}]
"""
)


@pytest.fixture
def failing(tmp_path: Path, people: People) -> Iterator[FakeTools]:
    """A service that fails once and then answers; a run has met the failure."""
    with FakeTools({"GET /items": [{"status": 500, "text": "no"}, {"json": [1]}]}) as tools:
        begin(write_spec(tmp_path, FETCHING, url=tools.url))
        work()
        yield tools


def test_the_list_shows_each_chain_as_its_newest_run(tmp_path: Path, people: People) -> None:
    assert "no runs" in command("runs", "list", *OPERATOR).out
    _, key = to_pause(write_spec(tmp_path, ASKING))
    command("approvals", "approve", key, "--as", "approver")
    assert Run.objects.count() == 2
    runs = command("runs", "list", *OPERATOR, "--json").object()["runs"]
    assert [(run["status"], run["step"], run["agent"]) for run in runs] == [("awaiting_approval", "second", "clerk")]
    head, line = command("runs", "list", *OPERATOR).out.splitlines()
    assert head.startswith("RUN")
    assert runs[0]["id"] in line


def test_a_queued_run_reads_running_on_the_wire_only(tmp_path: Path, people: People) -> None:
    begin(write_spec(tmp_path, ASKING))
    assert command("runs", "list", *OPERATOR, "--json").object()["runs"][0]["status"] == "running"
    assert "queued" in command("runs", "list", *OPERATOR).out


def test_show_tells_where_a_run_stands_and_what_it_did(tmp_path: Path, people: People) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    command("approvals", "approve", key, "--as", "approver")
    told = command("runs", "show", str(run.uuid), *OPERATOR)
    assert told.code == 0
    for word in ("clerk", "awaiting_approval", "second", "goes on as", "1. first completed"):
        assert word in told.out
    answer = command("runs", "show", str(run.uuid), *OPERATOR, "--json").object()
    assert (answer["success"], answer["id"]) == (True, str(run.uuid))
    assert answer["resumedAs"] == str(newest(run).uuid)
    assert answer["state"]["pendingApproval"]["step"] == "second"


def test_show_says_until_when_a_run_waits_to_try_again(tmp_path: Path, people: People) -> None:
    retry = FETCHING.replace('/items"', '/items", retry: {{max: 3, base_ms: 90000, max_delay_ms: 300000}}')
    with FakeTools({"GET /items": {"status": 503, "text": "no"}}) as tools:
        run = begin(write_spec(tmp_path, retry, url=tools.url))
        work()
    run.refresh_from_db()
    assert run.not_before is not None
    shown = command("runs", "show", str(run.uuid), *OPERATOR).out
    assert f"until {rfc3339(run.not_before)}, before attempt 2" in shown
    began = time.monotonic()
    said = rest_of(to_rest(run, here=True)).lines[0]
    assert time.monotonic() - began < 30, "nobody waits for what is not due within a minute"
    assert "waits until" in said
    assert "runs show" in said


def test_an_unknown_run_is_one_clear_line(people: People) -> None:
    for verb in ("show", "cancel", "retry", "give_up"):
        reason = [] if verb == "show" else ["--reason", "why"]
        for id in (UNKNOWN, "x", ""):
            told = command("runs", verb, id, *reason, *OPERATOR)
            assert told.code == 2
            assert len(told.err.splitlines()) == 1
            assert "there is no run" in told.err


def test_cancel_ends_a_waiting_run_and_its_request(tmp_path: Path, people: People) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    told = command("runs", "cancel", str(run.uuid), "--reason", "not needed", *OPERATOR)
    assert told.code == 0
    assert "cancelled by operator: not needed" in told.out
    entry = AuditEntry.objects.get(act="cancel")
    assert (entry.actor, entry.surface, entry.key) == ("operator", "cli", key)
    again = command("runs", "cancel", str(run.uuid), *OPERATOR, "--json")
    assert again.code == 2
    assert (again.object()["code"], again.object()["status"]) == ("not_possible", "cancelled")


def test_cancel_takes_the_id_that_the_run_was_started_with(tmp_path: Path, people: People) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    command("approvals", "approve", key, "--as", "approver")
    assert command("runs", "cancel", str(run.uuid), *OPERATOR).code == 0
    assert newest(run).status == Status.CANCELLED


def test_retry_goes_on_at_the_step_that_failed(failing: FakeTools) -> None:
    run = Run.objects.get()
    assert run.status == Status.FAILED
    told = command("runs", "retry", str(run.uuid), "--reason", "service is back", *OPERATOR)
    assert told.code == 0, told.err
    assert "completed" in told.out
    assert newest(Run.objects.get(pk=run.pk)).status == Status.COMPLETED
    assert AuditEntry.objects.get(act="retry").reason == "service is back"


def test_a_retry_that_fails_again_exits_2(failing: FakeTools) -> None:
    failing.script["GET /items"] = {"status": 500, "text": "no"}
    told = command("runs", "retry", str(Run.objects.get().uuid), "--reason", "hope", *OPERATOR, "--json")
    assert told.code == 2
    assert told.object()["state"]["status"] == "failed"


def test_give_up_ends_an_interrupted_run(failing: FakeTools) -> None:
    run = Run.objects.get()
    refused = command("runs", "give_up", str(run.uuid), "--reason", "gone", *OPERATOR)
    assert refused.code == 2
    Run.objects.update(status=Status.INTERRUPTED)
    told = command("runs", "give_up", str(run.uuid), "--reason", "gone", *OPERATOR)
    assert told.code == 0
    assert "given up by operator: gone" in told.out


def test_looking_and_acting_need_their_own_permissions(tmp_path: Path, people: People) -> None:
    run, _ = to_pause(write_spec(tmp_path, ASKING))
    assert command("runs", "list", "--as", "requester").code == 0
    for who, words in (
        ("stranger", ["list"]),
        ("stranger", ["show", str(run.uuid)]),
        ("requester", ["cancel", str(run.uuid)]),
        ("approver", ["retry", UNKNOWN, "--reason", "x"]),
    ):
        told = command("runs", *words, "--as", who)
        assert told.code == 2
        assert "permission" in told.err
    assert Run.objects.get().status == Status.AWAITING


def test_a_living_worker_is_left_to_drive_and_a_lost_one_is_not(tmp_path: Path, clock: Clock) -> None:
    """The worker may have variables that this process has not."""
    run = begin(write_spec(tmp_path, ASKING))
    beat()
    try:
        assert to_rest(run, here=False, seconds=0.3).status == Status.QUEUED
        clock.advance(11)  # nobody has seen the worker for more than ten seconds
        assert to_rest(run, here=False, seconds=0.3).status == Status.AWAITING
    finally:
        leave()
