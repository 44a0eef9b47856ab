"""Postgres goes away and comes back: at most the first call of a kind fails, cleanly, and nothing needs a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from approvals.models import ApprovalRequest
from tests.conftest import Clock, People, Processes, database_url
from tests.counts import count
from tests.fakes_tools import FakeTools
from tests.races.watching import connections_of, end_connections
from tests.served import Served, until
from tests.workbench import ASKING, PAYING, PAYING_ANSWERS, begin, to_pause, write_spec
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.registry import SpecFile

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgres")]

CONNECTS = count(40, 500)


@pytest.fixture
def asking(folder: Path) -> SpecFile:
    return write_spec(folder, ASKING.replace("{{{{ input }}}}", "it"), agent_id="asker", name="asking.yaml")


@pytest.fixture
def slow_tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("PAY_TOKEN", "tok-races")
    with FakeTools(PAYING_ANSWERS | {"GET /invoice": {"hang": 1.5, "json": {"amount": 120}}}) as server:
        yield server


def twice(call: Callable[[int], httpx2.Response]) -> list[int]:
    """The status codes of two calls; the first may be a clean `busy`, the second may not."""
    codes = []
    for number in range(2):
        answer = call(number)
        codes.append(answer.status_code)
        if answer.status_code == 503:
            assert answer.json()["code"] == "busy"
            assert answer.headers["Retry-After"]
    assert codes[0] in (200, 503), codes
    assert codes[1] == 200, codes
    return codes


def test_after_the_database_was_away_only_the_first_call_of_a_kind_may_fail(
    folder: Path,
    asking: SpecFile,
    people: People,
    manage: Processes,
    clock: Clock,
    report: Callable[[str], None],
) -> None:
    waiting = [to_pause(asking)[1] for _ in range(5)]
    served = Served(manage, folder, str(folder))
    lines: list[str] = []
    with served.as_token(people.approver) as approver:
        run = ApprovalRequest.objects.get(key=waiting[0]).run
        with approver.stream("GET", f"/runs/{run.uuid}/events") as stream:
            frames = stream.iter_lines()
            lines.append(next(frames))
            assert end_connections(database_url()) > 0
            codes = {
                "decide": twice(
                    lambda number: approver.post(
                        f"/approvals/{waiting[number]}/approve?wait=0", json={"approved": False}
                    )
                ),
                "list": twice(lambda number: approver.get("/approvals")),
                "read": twice(lambda number: approver.get(f"/runs/{run.uuid}")),
                "ready": twice(lambda number: approver.get("/readyz")),
            }
            decided = [waiting[number] for number in range(2) if codes["decide"][number] == 200]
            lines += [line for line in frames if line.startswith("data:")]
        if waiting[0] in decided:
            assert '"status":"rejected"' in lines[-1], "the open stream went on"
        clock.advance(8 * 24 * 3600)
        until(lambda: not ApprovalRequest.objects.filter(status="open").exists())
    assert ApprovalRequest.objects.filter(status="expired").count() == 5 - len(decided)
    assert "Traceback" not in served.said()
    report(f"every connection of a running server ended: then {codes}; its stream, sweep and workers went on")


def test_a_run_whose_call_was_out_when_the_database_went_away_ends_once(
    folder: Path, slow_tools: FakeTools, people: People, manage: Processes
) -> None:
    spec = write_spec(folder, PAYING, url=slow_tools.url)
    served = Served(manage, folder, str(folder))
    run = begin(spec)
    until(lambda: len(slow_tools.requests) == 1)
    end_connections(database_url())
    until(lambda: Run.objects.get(pk=run.pk).status == Status.AWAITING)
    with served.as_token(people.approver) as approver:
        key = ApprovalRequest.objects.get(run=run).key
        answer = approver.post(f"/approvals/{key}/approve", json={"approved": True})
    assert answer.status_code == 200, answer.text
    until(lambda: run_state(run)["status"] == "completed")
    assert [request.method for request in slow_tools.requests] == ["GET", "POST", "POST"]


def test_streams_that_come_and_go_leave_no_connection_behind(
    folder: Path, asking: SpecFile, people: People, manage: Processes, report: Callable[[str], None]
) -> None:
    run, _ = to_pause(asking)
    served = Served(manage, folder, str(folder))

    def connect() -> None:
        with watcher.stream("GET", f"/runs/{run.uuid}/events") as stream:
            assert stream.status_code == 200
            assert next(stream.iter_lines()).startswith("id:")

    with served.as_token(people.approver) as watcher:
        for _ in range(10):
            connect()
        before = connections_of(database_url())
        for _ in range(CONNECTS):
            connect()
    after = connections_of(database_url())
    assert after <= before + 3, (before, after)
    assert served.trouble() == []
    report(f"{CONNECTS} streams that came and went: {before} connections before, {after} after")
