"""The outbox is emptied of what is dealt with, in bounded batches, and never of what is still needed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from approvals.models import ApprovalRequest, Notice, NoticeStatus, RequestStatus
from approvals.notices import sender
from approvals.notices.pruning import prune
from approvals.services import decide
from statestore.clock import now
from tests.conftest import Clock, People
from tests.fakes_slack import FakeSlack
from tests.surfaces.slack.conftest import asking
from tests.surfaces.slack.conftest import slack as slack
from tests.workbench import acting, to_pause
from workflows import housekeeping

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 24 * 3600


def written(status: NoticeStatus, days: float, request: ApprovalRequest | None = None) -> Notice:
    """A notice that was due so many days ago."""
    due = now() - timedelta(days=days)
    return Notice.objects.create(
        request=request, channel="email", address="{}", about="opened", status=status, due_at=due, created_at=due
    )


def test_each_is_kept_as_long_as_somebody_may_want_it() -> None:
    kept = [
        written(NoticeStatus.SENT, 29.9),
        written(NoticeStatus.DROPPED, 29.9),
        written(NoticeStatus.FAILED, 89.9),
        written(NoticeStatus.WAITING, 400),
    ]
    for status, days in ((NoticeStatus.SENT, 30.1), (NoticeStatus.DROPPED, 30.1), (NoticeStatus.FAILED, 90.1)):
        written(status, days)
    assert prune() == 3
    assert set(Notice.objects.all()) == set(kept)
    assert prune() == 0


def test_it_deletes_in_batches_the_oldest_first() -> None:
    for days in range(40, 45):
        written(NoticeStatus.SENT, days)
    youngest = Notice.objects.earliest("pk")
    assert [prune(limit=2), Notice.objects.count()] == [2, 3]
    assert [prune(limit=2), list(Notice.objects.all())] == [2, [youngest]]
    assert [prune(limit=2), prune(limit=2)] == [1, 0]


def test_a_card_is_brought_up_to_date_however_long_it_waited(
    slack: FakeSlack, tmp_path: Path, people: People, clock: Clock
) -> None:
    _, key = to_pause(asking(tmp_path, policy="expires_in: 60d"))
    sender.send_due()
    clock.advance(45 * DAY)
    assert prune() == 0
    decide(key, approved=True, actor=acting(people.approver))
    sender.send_due()
    assert [update["ts"] for update in slack.updates] == ["1.1"]
    clock.advance(31 * DAY)
    assert prune() == 2
    assert not Notice.objects.exists()


def test_and_while_its_approval_can_be_taken_back(tmp_path: Path, people: People, clock: Clock) -> None:
    _, key = to_pause(asking(tmp_path))
    request = ApprovalRequest.objects.get(key=key)
    Notice.objects.all().delete()
    written(NoticeStatus.SENT, 31, request)
    rows = ApprovalRequest.objects.filter(pk=request.pk)
    rows.update(status=RequestStatus.DECIDED, recall_until=now() + timedelta(days=1))
    assert prune() == 0
    clock.advance(DAY + 1)
    assert prune() == 1


def test_every_worker_does_it_now_and_then() -> None:
    written(NoticeStatus.SENT, 31)
    chore = next(chore for chore in housekeeping.chores() if chore.name == "old notices")
    assert [chore.run(), chore.run()] == [1, 0]
