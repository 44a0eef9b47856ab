"""An old timer, a long wait and a sweep that comes late: the decision stands (scenarios 19, 24 and 26)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections

from approvals.models import ApprovalRequest, AuditEntry, Notice
from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_sign
from tests.conftest import Clock, People
from tests.crash.refusing import rows
from tests.fakes_slack import FakeSlack
from tests.fakes_tools import FakeTools
from tests.served import until
from tests.surfaces.cli.running import command
from tests.workbench import acting, to_pause, work
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = (
    "expires_in: 10s, remind_every: 9s, on_expire: execute_tool(tell), "
    'notify: [{type: slack, token: "${SLACK_BOT_TOKEN}", channel: "#approvals"}]'
)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS | {"POST /last": {"hang": 1.5, "json": {"done": True}}}) as server:
        yield server


def sweep_twice() -> None:
    for _ in range(2):
        assert command("sweep").code == 0


def test_a_timer_of_what_was_decided_does_nothing_while_the_next_step_works(
    slack: FakeSlack, tools: FakeTools, people: People, tmp_path: Path, clock: Clock
) -> None:
    """Scenario 19: approved at 5 s, swept twice at 11 s, while the later step is at work and after it ended."""
    run, key = to_pause(a_sign(tmp_path, POLICY, url=tools.url))
    ended, ended_key = to_pause(a_sign(tmp_path, POLICY, url=tools.url))
    command("sweep")
    clock.advance(5)
    decide(key, approved=True, actor=acting(people.approver))
    clock.advance(1)
    decide(ended_key, approved=False, actor=acting(people.approver))
    command("sweep")
    posted = len(slack.requests)
    worker = threading.Thread(target=_work)
    worker.start()
    until(lambda: tools.requests)
    clock.advance(5)
    before = rows()
    sweep_twice()
    assert {**rows(), "AuditEntry": before["AuditEntry"]} == before, "the seals aside, nothing was touched"
    worker.join(30)
    assert run_state(run)["status"] == "completed"
    assert run_state(ended)["status"] == "rejected"
    sweep_twice()
    assert newest(run).status == Status.COMPLETED
    assert [entry.act for entry in AuditEntry.objects.order_by("id")] == ["decide", "decide"]
    assert [request.url.rpartition("/")[2] for request in tools.requests] == ["last"]
    assert len(slack.requests) == posted, "and nobody is told anything"
    assert not Notice.objects.filter(about="reminder").exists()


def _work() -> None:
    try:
        work()
    finally:
        connections.close_all()


def test_waiting_counts_towards_no_other_limit(people: People, tmp_path: Path, clock: Clock) -> None:
    """Scenario 24: only the request has a lifetime; a run may wait longer than any lease, call or retry."""
    with FakeTools(ANSWERS) as tools:
        run, key = to_pause(a_sign(tmp_path, "expires_in: 1d", url=tools.url))
        clock.advance(23 * 3600)
        assert command("sweep").code == command("recover").code == 0
        assert newest(run).status == Status.AWAITING
        decide(key, approved=True, actor=acting(people.approver))
        assert work() == 1
        assert newest(run).status == Status.COMPLETED
        assert list(Run.objects.values_list("takeovers", flat=True)) == [0, 0]
        assert ApprovalRequest.objects.get(key=key).status == "decided"
