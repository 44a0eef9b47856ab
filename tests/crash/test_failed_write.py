"""A database error in any write of a decision: all or nothing, a clean answer, and the next works (scenario 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import models
from django.test import Client
from django_tasks_db.models import DBTaskResult
from pytest_django import Settings

from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry, Notice
from approvals.notices import sender
from approvals.tokens import create_token
from statestore.models import StateRecord
from tests.conftest import Clock, People, Processes
from tests.crash.refusing import WORDS, refusing, rows
from tests.fakes_slack import FakeSlack
from tests.fakes_tools import FakeTools
from tests.workbench import PAYING, begin, to_pause, work, write_spec
from workflows.advance import advance
from workflows.models import Attempt, Run, RunEvent, Status
from workflows.reading import run_state
from workflows.recovery import recover
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)

#: Every write of an approval, in its order; the last ones are those of the proof and of the way on.
WRITES: list[tuple[type[models.Model], str]] = [
    (StateRecord, "UPDATE"),
    (StateRecord, "DELETE"),
    (ApprovalRequest, "UPDATE"),
    (Run, "UPDATE"),
    (Run, "INSERT"),
    (DBTaskResult, "INSERT"),
    (Notice, "INSERT"),
    (AuditEntry, "INSERT"),
]
REJECTING: list[tuple[type[models.Model], str]] = [
    *(write for write in WRITES if write[0] is not DBTaskResult),
    (RunEvent, "INSERT"),
]
EXPIRING: list[tuple[type[models.Model], str]] = [
    (StateRecord, "DELETE"),
    (ApprovalRequest, "UPDATE"),
    (Run, "UPDATE"),
    (RunEvent, "INSERT"),
    (Notice, "INSERT"),
    (AuditEntry, "INSERT"),
]

Press = Callable[[str, bool], Any]


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[FakeSlack]:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    with FakeSlack() as fake:
        settings.KAMPONG_SLACK_API_URL = fake.api_url
        yield fake


@pytest.fixture
def spec(tmp_path: Path, tools: FakeTools, slack: FakeSlack) -> SpecFile:
    """look - pay (asks in a channel) - receipt."""
    notifier = '  approval_notifier: {{type: slack, token: "${{SLACK_BOT_TOKEN}}", channel: "#payments"}}\n'
    return write_spec(tmp_path, PAYING.replace("  tools:\n", f"{notifier}  tools:\n"), url=tools.url)


@pytest.fixture
def press(people: People) -> Press:
    """Decides over HTTP."""
    client = Client(raise_request_exception=False)
    headers = {"Authorization": f"Bearer {create_token(people.approver)}"}

    def at(key: str, approved: bool) -> Any:
        path, body = f"/approvals/{key}/approve?wait=0", {"approved": approved}
        return client.post(path, body, content_type="application/json", headers=headers)

    return at


def test_an_approval_that_cannot_be_written_changes_nothing_and_the_next_one_works(
    spec: SpecFile, tools: FakeTools, slack: FakeSlack, press: Press
) -> None:
    for number, write in enumerate(WRITES):
        run, key = to_pause(spec)
        sender.send_due()
        before, called = rows(), len(tools.requests)
        with refusing(*write):
            refused = press(key, True)
        assert refused.status_code in (500, 503), write
        assert refused.json()["code"] in ("internal", "busy")
        assert WORDS not in refused.text
        assert rows() == before, write
        assert work() == sender.send_due() == 0, write
        assert len(slack.updates) == number, "nobody was told of a decision that is none"
        assert press(key, True).status_code == 200, write
        assert work() == 1
        assert run_state(run)["status"] == "completed"
        assert [request.method for request in tools.requests[called:]] == ["POST", "POST"]
        assert AuditEntry.objects.filter(key=key).count() == 1
        assert sender.send_due() == 1
        assert len(slack.updates) == number + 1


def test_a_rejection_that_cannot_be_written_changes_nothing_and_the_next_one_works(
    spec: SpecFile, tools: FakeTools, press: Press
) -> None:
    for write in REJECTING:
        run, key = to_pause(spec)
        before, called = rows(), len(tools.requests)
        with refusing(*write):
            assert press(key, False).status_code in (500, 503), write
        assert rows() == before, write
        assert press(key, False).status_code == 200, write
        assert run_state(run)["status"] == "rejected"
        assert work() == 0
        assert len(tools.requests) == called


def test_a_command_that_cannot_write_says_so_in_a_line_and_exits_2(
    spec: SpecFile, people: People, manage: Processes
) -> None:
    _, key = to_pause(spec)
    before = rows()
    with refusing(AuditEntry, "INSERT"):
        refused = manage.run("approvals", "approve", key, "--as", "approver")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert len(refused.stderr.strip().splitlines()) == 1
    assert "Traceback" not in refused.stderr
    assert rows() == before


def test_an_expiry_that_cannot_be_written_changes_nothing_and_the_next_sweep_does_it(
    spec: SpecFile, clock: Clock
) -> None:
    run, _ = to_pause(spec)
    before = rows()
    clock.advance(8 * 24 * 3600)
    for write in EXPIRING:
        with refusing(*write), pytest.raises(Exception, match=WORDS):
            expire_due()
        assert rows() == before, write
    assert expire_due() == 1
    assert run_state(run)["status"] == "expired"


def test_a_pause_that_cannot_be_written_leaves_no_half_and_is_asked_for_by_the_next_worker(
    spec: SpecFile, tools: FakeTools, slack: FakeSlack, clock: Clock
) -> None:
    for model in (StateRecord, ApprovalRequest, Notice):
        run = begin(spec)
        before = len(tools.requests)
        with refusing(model, "INSERT"), pytest.raises(Exception, match=WORDS):
            advance("default", str(run.uuid))
        assert StateRecord.objects.count() == ApprovalRequest.objects.filter(run=run).count() == 0
        assert sender.send_due() == 0, "nobody is asked by a pause that is none"
        clock.advance(61)
        assert recover().requeued == 1
        work()
        run.refresh_from_db()
        assert run.status == Status.AWAITING
        assert len(tools.requests) == before + 1, "the look was not made again"
        assert sender.send_due() == 1
        StateRecord.objects.all().delete()
    assert len(slack.posts) == 3


def test_an_outcome_that_cannot_be_written_interrupts_the_run_with_its_step(
    spec: SpecFile, tools: FakeTools, clock: Clock
) -> None:
    run = begin(spec)
    with refusing(Attempt, "UPDATE"), pytest.raises(Exception, match=WORDS):
        advance("default", str(run.uuid))
    clock.advance(61)
    assert work() == 0
    run.refresh_from_db()
    assert run.status == Status.RUNNING
    assert recover().interrupted == 1
    run.refresh_from_db()
    assert run.status == Status.INTERRUPTED
    assert "look" in run.error
    assert len(tools.requests) == 1
