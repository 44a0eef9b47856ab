"""What seldom happens to a decision: a lost race, a busy database, a request that is asked again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from approvals.admin.refusals import problem_of
from approvals.errors import AlreadyResolved
from approvals.models import ApprovalRequest
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import scenes
from tests.surfaces.admin.conftest import decide_url
from tests.workbench import key_of, to_pause, work
from workflows.models import Run, Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approver(people: People, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(people.approver)


def test_the_loser_of_a_race_is_told_who_won_and_where_to_look() -> None:
    decision = {"outcome": "approved", "by": "Asha", "at": "2026-11-29T10:00:00.000Z", "surface": "slack"}
    problem = problem_of(AlreadyResolved(decision))
    assert problem.status == 409
    assert "approved by Asha on 2026-11-29 at 10:00 UTC (slack)" in problem.sentence
    assert problem.next_move == "Open the run to see how it went on."


@pytest.mark.only("sqlite")
def test_a_busy_database_is_a_sentence_and_loses_nothing(
    approver: Client, waiting: tuple[Run, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = decide_url(waiting[1])
    fields = {"verdict": "approve", "reason": "my words", "digest": approver.get(address).context["digest"]}
    monkeypatch.setattr(connection.connection, "patience", 0.2)
    writer = sqlite3.connect(str(connection.settings_dict["NAME"]), isolation_level=None)
    try:
        writer.execute("BEGIN IMMEDIATE")
        answer = approver.post(address, fields)
        writer.execute("ROLLBACK")
    finally:
        writer.close()
    page = answer.content.decode()
    assert answer.status_code == 503
    assert "Press again in a moment; nothing was lost." in page
    assert "my words" in page
    assert approver.post(address, fields).status_code == 302


def test_a_request_that_is_asked_again_shows_both_versions(
    approver: Client, tmp_path: Path, tools: FakeTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAY_HOST", tools.url)
    run, key = to_pause(scenes.paying(tmp_path, "${PAY_HOST}"))
    first = approver.get(decide_url(key))
    assert "Sends POST to ${PAY_HOST}" in first.content.decode()
    answer = approver.post(decide_url(key), {"verdict": "approve", "digest": first.context["digest"]})
    assert answer.status_code == 302
    monkeypatch.setenv("PAY_HOST", tools.url.replace("127.0.0.1", "localhost"))
    work()
    again = newest(run)
    assert again.status == Status.AWAITING
    page = approver.get(decide_url(key_of(again))).content.decode()
    assert "Why this is asked again" in page
    assert "is not the one that was shown" in page
    assert decide_url(key) in page
    assert "It was asked again" in approver.get(decide_url(key)).content.decode()
    assert [request.method for request in tools.requests] == ["GET"]
    assert ApprovalRequest.objects.get(run=again).reopened_from is not None
