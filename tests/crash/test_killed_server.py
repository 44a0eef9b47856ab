"""The whole server killed while something waits or works: what is started next goes on from there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.models import ApprovalRequest
from tests.conftest import Clock, People, Processes
from tests.fakes_tools import FakeTools
from tests.served import Served, until
from tests.workbench import PAYING, PAYING_ANSWERS, write_spec
from workflows.models import Run, Status
from workflows.runs import find_run, newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the server's spec lies."""
    path = tmp_path / "specs"
    path.mkdir()
    return path


@pytest.fixture
def slow_payment(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    """The first payment takes longer than its caller lives."""
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    paying = [{"hang": 30, "json": {"id": "p-1"}}, {"json": {"id": "p-2"}}]
    with FakeTools(PAYING_ANSWERS | {"POST /pay": paying}) as service:
        yield service


def waiting_run(served: Served, people: People) -> tuple[Run, str]:
    """A run that was started over REST and waits, and its key."""
    with served.as_token(people.requester) as requester:
        answer = requester.post("/webhook/clerk", json={"invoice": 7})
    assert answer.status_code == 201, answer.text
    run = find_run(answer.json()["id"])
    until(lambda: ApprovalRequest.objects.filter(run=run).exists())
    return run, str(ApprovalRequest.objects.get(run=run).key)


def killed(served: Served) -> None:
    served.process.kill()
    served.process.wait(30)


def test_a_server_killed_while_something_waits_goes_on_from_the_paused_step(
    folder: Path, tmp_path: Path, tools: FakeTools, people: People, manage: Processes
) -> None:
    write_spec(folder, PAYING, url=tools.url)
    first = Served(manage, tmp_path, str(folder))
    run, key = waiting_run(first, people)
    killed(first)
    assert [request.method for request in tools.requests] == ["GET"]
    second = Served(manage, tmp_path, str(folder))
    with second.as_token(people.approver) as approver:
        listed = approver.get("/approvals").json()["approvals"]
        assert [item["key"] for item in listed] == [key]
        answer = approver.post(f"/approvals/{key}/approve?wait=30", json={"approved": True, "reason": "due"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"]["status"] == "completed"
    assert answer.json()["resumedFrom"] == str(run.uuid)
    assert [request.method for request in tools.requests] == ["GET", "POST", "POST"], "the look was not made again"
    assert first.trouble() + second.trouble() == []


def test_a_server_killed_during_the_payment_leaves_it_to_a_person(
    folder: Path, tmp_path: Path, slow_payment: FakeTools, people: People, manage: Processes, clock: Clock
) -> None:
    def payments() -> int:
        return sum(request.url.endswith("/pay") for request in slow_payment.requests)

    write_spec(folder, PAYING, url=slow_payment.url)
    first = Served(manage, tmp_path, str(folder))
    run, key = waiting_run(first, people)
    with first.as_token(people.approver) as approver:
        assert approver.post(f"/approvals/{key}/approve?wait=0", json={"approved": True}).status_code == 200
    until(lambda: payments() == 1)
    killed(first)
    second = Served(manage, tmp_path, str(folder), KAMPONG_RECOVER_SECONDS="0.2")
    clock.advance(61)
    until(lambda: newest(run).status == Status.INTERRUPTED)
    assert "step pay" in newest(run).error
    assert payments() == 1, "nothing repeats an effect by itself"
    with second.as_token(people.operator) as operator:
        refused = operator.post(f"/runs/{run.uuid}/retry", json={"reason": ""})
        assert refused.status_code == 400
        answer = operator.post(f"/runs/{run.uuid}/retry", json={"reason": "the bank has no such payment"})
        assert answer.status_code == 200, answer.text
        until(lambda: newest(run).status == Status.COMPLETED)
        state = operator.get(f"/runs/{run.uuid}").json()["state"]
    assert state["finalOutput"]["pay"] == {"id": "p-2"}
    assert payments() == 2
    assert ApprovalRequest.objects.count() == 1, "nobody was asked again"
