"""What was shown is what runs, everywhere: an old page, card or answer decides nothing (scenario 37)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.editing import edit_request
from approvals.models import ApprovalRequest, AuditEntry
from approvals.notices import sender
from tests.approvals.policies import member, written
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.api.conftest import until
from tests.surfaces.everywhere.surfaces import Press, Slack, Surface
from tests.surfaces.slack.conftest import CHANNEL
from tests.workbench import HEAD, acting, to_pause, work
from workflows.models import Run, Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

YES = Press(approved=True)
PAYING = (
    HEAD.replace('"1.1"', '"1.2"').format(agent_id="clerk")
    + f"""\
  approval_notifier: {CHANNEL}
  tools:
    - name: pay
      action: http_request
      method: POST
      url: "URL/pay"
      approval: {{editable: [action.body.json.amount]}}
      body: {{json: {{amount: 120}}}}
  workflow:
    - {{step: pay, type: tool, tool: pay}}
"""
)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools({"POST /pay": {"json": {"id": "p-1"}}}) as service:
        yield service


def drawn_and_then_changed(folder: Path, tools: FakeTools) -> tuple[Run, ApprovalRequest]:
    """A request as it was first shown, of which somebody changed the amount since."""
    run, key = to_pause(written(folder, PAYING.replace("URL", tools.url)))
    sender.send_due()
    drawn = ApprovalRequest.objects.get(key=key)
    edit_request(key, edits={"action.body.json.amount": 99}, actor=acting(member("asha")), reason="less")
    return run, drawn


def test_an_old_page_is_refused_and_the_new_one_is_what_runs(
    surface: Surface, people: People, tools: FakeTools, tmp_path: Path
) -> None:
    run, drawn = drawn_and_then_changed(tmp_path, tools)
    if surface.shows:
        told = surface.press(people.approver, drawn, YES)
        assert "not the one" in told or "not what this card showed" in told, told
        shows_it_anew(surface, told, drawn)
        assert not AuditEntry.objects.filter(act="decide").exists()
        assert newest(run).status == Status.AWAITING
        assert work() == 0
    sender.send_due()
    fresh = ApprovalRequest.objects.get(pk=drawn.pk)
    assert fresh.digest != drawn.digest
    if isinstance(surface, Slack):
        surface.press_changed(people.approver)
    else:
        surface.press(people.approver, fresh, YES)
    work()
    entry = AuditEntry.objects.get(act="decide")
    assert (entry.digest, entry.digest_sent) == (fresh.digest, surface.shows)
    assert newest(run).status == Status.COMPLETED
    assert [request.json() for request in tools.requests] == [{"amount": 99}]


def shows_it_anew(surface: Surface, told: str, drawn: ApprovalRequest) -> None:
    """A page and a card show what would run now; an answer over REST names both digests."""
    if surface.name == "api":
        body = json.loads(told)
        present = ApprovalRequest.objects.get(pk=drawn.pk).digest
        assert (body["code"], body["shown"], body["present"]) == ("action_changed", drawn.digest, present)
    elif isinstance(surface, Slack):
        until(lambda: "99" in surface.said())
    else:
        assert "99" in told
