"""Taking an approval back over REST and at a terminal, and what readers of the run see of it (design 5.1, 5.2)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_pay
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.surfaces.api.conftest import with_token
from tests.surfaces.api.streams import stream
from tests.surfaces.cli.running import command
from tests.workbench import acting, to_pause, work
from workflows.models import Run
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


@pytest.fixture
def waiting(tmp_path: Path, tools: FakeTools) -> tuple[Run, str]:
    return to_pause(a_pay(tmp_path, "recall: 10m", url=tools.url))


def approve(key: str, people: People) -> dict[str, Any]:
    caller = with_token(people.approver)
    answer: dict[str, Any] = caller.post(f"/approvals/{key}/approve?wait=20", {"approved": True}).json()
    return answer


def test_the_answer_of_an_approval_says_until_when_and_does_not_wait_for_it(
    waiting: tuple[Run, str], people: People
) -> None:
    begun = time.monotonic()
    answer = approve(waiting[1], people)
    assert time.monotonic() - begun < 10
    assert answer["state"]["status"] == "running"
    told = with_token(people.approver).get(f"/approvals/{waiting[1]}").json()
    assert told["code"] == "approval_not_found"
    assert told["decision"]["recallUntil"] == answer["recallUntil"]


def test_withdrawn_the_run_waits_again_and_every_id_of_it_reads_so(waiting: tuple[Run, str], people: People) -> None:
    run, key = waiting
    approved, caller = approve(key, people)["id"], with_token(people.approver)
    done = caller.post(f"/approvals/{key}/withdraw", {"reason": "wrong sum"})
    assert (done.status_code, done.json()["state"]["status"]) == (200, "awaiting_approval")
    again = done.json()["state"]["pendingApproval"]["key"]
    for one in (str(run.uuid), approved, done.json()["id"]):
        assert caller.get(f"/runs/{one}").json()["state"]["pendingApproval"]["key"] == again
    own = caller.get(f"/runs/{approved}?own=1").json()
    assert (own["state"]["status"], own["resumedAs"]) == ("cancelled", done.json()["id"])
    assert [one["id"] for one in caller.get("/runs").json()["runs"]] == [done.json()["id"]]
    assert caller.get("/runs?status=cancelled").json()["runs"] == []
    assert caller.get(f"/approvals/{again}").json()["reopenedFrom"]["key"] == key
    late = caller.get(f"/approvals/{key}").json()
    assert (late["decision"]["outcome"], late["decision"]["by"]) == ("withdrawn", "approver")


def test_refusals_come_in_the_one_shape(waiting: tuple[Run, str], people: People) -> None:
    _, key = waiting
    caller = with_token(people.approver)

    def told(body: Any, by: Any = caller, at: str = key) -> tuple[int, str]:
        answer = by.post(f"/approvals/{at}/withdraw", body)
        return answer.status_code, answer.json()["code"]

    why = {"reason": "no"}
    assert told(why) == (409, "not_possible")
    assert told({}) == (400, "invalid")
    assert told({"reason": " "}) == (400, "invalid")
    assert told({**why, "by": "asha"}) == (400, "invalid")
    stranger = with_token(people.stranger)
    assert told(why, stranger) == told(why, stranger, "3a1ab7f6-0000-4000-8000-000000000000") == (403, "not_allowed")
    assert told(why, at="3a1ab7f6-0000-4000-8000-000000000000") == (404, "approval_not_found")


def test_at_a_terminal(waiting: tuple[Run, str], people: People) -> None:
    run, key = waiting
    approved = command("approvals", "approve", key, "--as", "approver")
    assert approved.code == 0, approved
    assert "while its approval can be withdrawn" in approved.out
    told = command("approvals", "withdraw", key, "--reason", "wrong sum", "--as", "approver")
    assert told.code == 3, told
    assert "Withdrawn by approver" in told.out
    assert "waits for approval" in told.out
    again = command("approvals", "withdraw", key, "--reason", "wrong sum", "--as", "approver")
    assert (again.code, "withdrawn by approver" in again.err) == (2, True)
    assert command("approvals", "withdraw", key, "--as", "approver").code == 64
    key = str(newest(run).requests.get().key)
    command("approvals", "approve", key, "--as", "approver")
    answer = command("approvals", "withdraw", key, "--reason", "again", "--as", "approver", "--json").object()
    assert answer["state"]["status"] == "awaiting_approval"


def test_a_watcher_goes_on_with_the_run_that_waits_again(
    server: str, waiting: tuple[Run, str], people: People, clock: Clock
) -> None:
    run, key = waiting
    caller = with_token(people.approver)
    with stream(f"{server}/runs/{run.uuid}/events", caller.headers) as events:
        assert events.next().data["state"]["status"] == "awaiting_approval"
        decide(key, approved=True, actor=acting(people.approver))
        assert events.quiet(1.0), "the watcher has gone on to the run that waits for its recall"
        caller.post(f"/approvals/{key}/withdraw", {"reason": "wrong sum"})
        frame = events.next()
        assert frame.kind == "awaiting_approval", "no end is told in between"
        decide(frame.data["event"]["key"], approved=True, actor=acting(people.approver))
        clock.advance(601)
        work()
        kinds = [one.kind for one in events.rest()]
        assert (kinds[-1], kinds.count("completed")) == ("completed", 1)


def test_who_comes_back_to_the_withdrawn_one_is_not_sent_away(
    server: str, waiting: tuple[Run, str], people: People
) -> None:
    _, key = waiting
    caller = with_token(people.approver)
    approved = decide(key, approved=True, actor=acting(people.approver)).run
    caller.post(f"/approvals/{key}/withdraw", {"reason": "wrong sum"})
    headers = {**caller.headers, "Last-Event-ID": f"{approved.uuid}/0"}
    with stream(f"{server}/runs/{approved.uuid}/events", headers) as events:
        assert events.next().kind == "awaiting_approval"
