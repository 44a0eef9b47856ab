"""The example of an incident desk: one page for one incident, through a server that is killed in the middle."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from approvals.models import ApprovalRequest, RequestStatus
from tests.conftest import ROOT, Clock, People, Processes
from tests.fakes_tools import FakeTools
from tests.served import Served, until
from tests.surfaces.cli.running import command
from tests.workflows.storing import keys
from workflows.reading import run_state
from workflows.runs import find_run

pytestmark = pytest.mark.django_db(transaction=True)

DEMO = "http://127.0.0.1:8787"
AGENT = "incident-desk"
ALERT = {"fingerprint": "disk-7", "service": "billing", "summary": "The disk is full"}
SERVICE: dict[str, Any] = {
    "POST /service/pages": {"json": {"id": "N-1"}},
    "POST /service/messages": {"json": {"id": "M-1"}},
}


@pytest.fixture
def service() -> Iterator[FakeTools]:
    with FakeTools(SERVICE) as service:
        yield service
        assert service.failures == []


@pytest.fixture
def example(tmp_path: Path, service: FakeTools) -> Path:
    """The file, with the demo's address replaced by the server of this test."""
    folder = tmp_path / "specs"
    folder.mkdir()
    content = (ROOT / "examples" / "incident.yaml").read_text(encoding="utf-8")
    path = folder / "incident.yaml"
    path.write_text(content.replace(f"{DEMO}/service", f"{service.url}/service"), encoding="utf-8")
    return path


def calls(service: FakeTools) -> list[str]:
    return [request.url.rpartition("/")[2] for request in service.requests]


def test_what_its_introduction_says_at_the_terminal(example: Path, service: FakeTools, clock: Clock) -> None:
    def alert(text: str) -> Any:
        told = command("run_spec", str(example), "--input", json.dumps(ALERT), "--json", text=text)
        assert told.code in (0, 2), told.err
        return told.object()

    first = alert("n: not yet\n")
    assert (first["status"], calls(service)) == ("rejected", ["pages"])
    assert service.requests[0].json() == {"service": "billing", "text": "The disk is full"}
    assert list(alert("")["output"]) == ["seen"]
    clock.advance(901)
    later = alert("")["output"]
    assert (later["open"]["opened"], later["ours"]["first"]) == (False, False)
    assert calls(service) == ["pages", "messages"]
    assert f"incident:{ALERT['fingerprint']}" in keys(AGENT)


def test_one_page_and_one_question_through_a_server_that_is_killed(
    example: Path, service: FakeTools, people: People, manage: Processes, clock: Clock
) -> None:
    def alert(client: httpx2.Client) -> str:
        answer = client.post(f"/webhook/{AGENT}", json=ALERT)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def state(run: str) -> Any:
        return run_state(find_run(run))

    served = Served(manage, example.parent, str(example))
    with served.as_token(people.requester) as client:
        both = [alert(client), alert(client)]
        until(lambda: {state(one)["status"] for one in both} == {"awaiting_approval", "completed"})
    # Two workers: either can be the first.
    first, repeat = sorted(both, key=lambda one: str(state(one)["status"]))
    assert state(repeat)["finalOutput"] == {"seen": {"first": False, "run": first}}
    served.process.send_signal(signal.SIGKILL)
    served.process.wait(30)
    clock.advance(901)
    served = Served(manage, example.parent, str(example))
    with served.as_token(people.requester) as client:
        later = alert(client)
        until(lambda: state(later)["status"] == "completed")
    assert calls(service) == ["pages", "messages"]
    request = ApprovalRequest.objects.get(status=RequestStatus.OPEN)
    with served.as_token(people.approver) as client:
        answer = client.post(f"/approvals/{request.key}/approve?wait=30", json={"approved": True})
        assert answer.status_code == 200, answer.text
    until(lambda: state(first)["status"] == "completed")
    closed = state(first)["finalOutput"]["close"]
    assert (closed["closed"], closed["incident"]["value"]["summary"]) == (True, "The disk is full")
    assert f"incident:{ALERT['fingerprint']}" not in keys(AGENT)
    assert calls(service) == ["pages", "messages"]
    assert served.trouble() == []
