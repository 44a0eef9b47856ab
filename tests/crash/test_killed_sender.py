"""A sender that is killed: nothing is lost, another one goes on after its hold, and what had left may leave again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from approvals.models import Notice
from approvals.notices import sender
from approvals.services import decide
from tests.conftest import Clock, People
from tests.crash.conftest import Child, dies
from tests.fakes_slack import FakeSlack
from tests.surfaces.slack.conftest import asking
from tests.workbench import acting, to_pause
from workflows.models import Status

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[FakeSlack]:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    with FakeSlack() as fake:
        settings.KAMPONG_SLACK_API_URL = fake.api_url
        yield fake


@pytest.mark.parametrize(("point", "messages"), [("notices.taken", 1), ("notices.sent", 2)])
def test_what_a_killed_sender_held_is_sent_by_another(
    point: str, messages: int, slack: FakeSlack, tmp_path: Path, child: Child, clock: Clock, people: People
) -> None:
    run, key = to_pause(asking(tmp_path))
    env = {"KAMPONG_SLACK_API_URL": slack.api_url, "SLACK_BOT_TOKEN": "xoxb-1"}
    dies(child("send", faults=f"{point}=kill", **env))
    run.refresh_from_db()
    assert run.status == Status.AWAITING
    assert Notice.objects.get().status == "waiting"
    assert sender.send_due() == 0  # held by the one that is gone
    clock.advance(sender.HOLD_SECONDS + 1)
    assert sender.send_due() == 1
    assert len(slack.posts) == messages
    decide(key, approved=False, actor=acting(people.approver))
    sender.send_due()
    assert [notice.status for notice in Notice.objects.order_by("id")] == ["sent", "sent"]
    assert slack.updates[-1]["ts"] == f"{messages}.1"
