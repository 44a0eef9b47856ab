"""A channel with people in it: one who may decide, one who may not, one whom nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from approvals.actors import actor_for_user
from approvals.notices import sender
from approvals.slack import replies
from approvals.slack_links import account, link
from tests.approvals.policies import written
from tests.conftest import People
from tests.fakes_slack import SECRET, TEAM, FakeSlack, Member
from tests.surfaces.api.conftest import until
from tests.workbench import HEAD, to_pause
from workflows.models import Run
from workflows.registry import SpecFile

CHANNEL = '{type: slack, token: "${SLACK_BOT_TOKEN}", channel: "#approvals"}'
TOKEN = "xoxb-canary-4711"

TEXT = (
    HEAD.replace('"1.1"', '"1.2"').format(agent_id="clerk")
    + """\
  approval_notifier: CHANNEL
  workflow:
    - {step: sign, type: approval, message: "Really {{ input }}?"POLICY}
    - {step: last, type: approval}
"""
)


def asking(folder: Path, policy: str = "", channel: str = CHANNEL) -> SpecFile:
    """A spec that asks `Really <input>?` in the channel, under a policy (`require_reason: always`)."""
    text = TEXT.replace("CHANNEL", channel).replace("POLICY", f", {policy}" if policy else "")
    return written(folder, text)


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[FakeSlack]:
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("SLACK_SIGNING_SECRET", SECRET)
    with FakeSlack() as fake:
        settings.KAMPONG_SLACK_API_URL = fake.api_url
        settings.KAMPONG_BASE_URL = "https://kampong.example.org/desk"
        yield fake


@dataclass(frozen=True, kw_only=True)
class Channel:
    """`approver` decides as the approver, `stranger` as somebody who may not, `visitor` as nobody."""

    slack: FakeSlack
    approver: Member
    stranger: Member
    visitor: Member

    def linked(self, user: User, slack_id: str) -> Member:
        """One more member, who decides as this user."""
        link(account(TEAM, slack_id, user.username), user, actor=actor_for_user(user, "admin"))
        return Member(slack=self.slack, id=slack_id, name=user.username)

    def card(self, spec: SpecFile, **options: Any) -> tuple[Run, str, dict[str, Any]]:
        """A run that waits, its key, and the card that was posted for it."""
        run, key = to_pause(spec, **options)
        sender.send_due()
        return run, key, self.slack.posts[-1]

    def replies(self, count: int = 1) -> list[dict[str, Any]]:
        """What was posted as answers to the clicks so far: so many."""
        until(all_answered)
        found: list[dict[str, Any]] = list(self.slack.replies)
        assert len(found) == count, found
        return found


def all_answered() -> bool:
    """Whether every answer that was handed over by now has been posted: a place is given back after that."""
    return replies._room._value == replies.MOST_WAITING


@pytest.fixture
def channel(slack: FakeSlack, people: People) -> Channel:
    visitor = Member(slack=slack, id="U9", name="vis")
    bare = Channel(slack=slack, approver=visitor, stranger=visitor, visitor=visitor)
    return Channel(
        slack=slack,
        approver=bare.linked(people.approver, "U1"),
        stranger=bare.linked(people.stranger, "U2"),
        visitor=visitor,
    )
