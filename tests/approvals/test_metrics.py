"""What deciding counts: how long people took, how long an answer took, who came too late, what left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from approvals import metrics
from approvals.acting import act_on
from approvals.errors import AlreadyResolved, ApprovalNotFound
from approvals.expiry import expire_due
from approvals.models import Notice, NoticeStatus
from approvals.notices import sender
from approvals.services import decide
from statestore.keys import shown
from tests.approvals.policies import a_sign, member
from tests.conftest import Clock, People
from tests.fakes_slack import FakeSlack
from tests.metering import grown, logged
from tests.surfaces.slack.conftest import asking
from tests.workbench import ASKING, acting, to_pause, write_spec
from workflows.errors import NotAllowed
from workflows.metrics.runs import CLAIMS_LOST

pytestmark = pytest.mark.django_db(transaction=True)

POST = "POST https://slack.com/api/chat.postMessage"


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[FakeSlack]:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    with FakeSlack() as fake:
        settings.KAMPONG_SLACK_API_URL = fake.api_url
        yield fake


def test_the_time_to_a_decision_is_counted_by_outcome_and_surface(tmp_path: Path, people: People, clock: Clock) -> None:
    spec = write_spec(tmp_path, ASKING)
    key = to_pause(spec)[1]
    clock.advance(400)
    before = metrics.LATENCY.spreads().get(("approved", "admin"))
    with grown(metrics.LATENCY) as times, logged("kampong.approvals") as lines:
        decide(key, approved=True, actor=acting(people.approver, "admin"))
        decide(to_pause(spec)[1], approved=False, actor=acting(people.approver))
        clock.advance(8 * 24 * 3600)
        expire_due()
    assert times == {("approved", "admin"): 1, ("rejected", "api"): 1, ("expired", "system"): 1}
    after = metrics.LATENCY.spreads()["approved", "admin"]
    assert 400 <= after.total - (before.total if before else 0) < 460
    assert after.counts[metrics.LATENCY.bounds.index(900)] - (before.counts[3] if before else 0) == 1
    assert [line["message"] for line in lines] == ["request approved (admin)", "request rejected (api)",
                                                   "request expired (system)"]  # fmt: skip
    assert lines[0]["key"] == shown(f"approval:{key}")
    assert key not in str(lines)


def test_an_answer_is_measured_by_what_it_came_to(tmp_path: Path, people: People) -> None:
    key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}"))[1]
    with grown(metrics.DECIDE) as answers:
        decide(key, approved=True, actor=acting(member("ana")))
        decide(key, approved=True, actor=acting(member("bo")))
        with pytest.raises(ApprovalNotFound):
            decide(key, approved=True, actor=acting(member("cy")))
        with pytest.raises(NotAllowed):
            decide(key, approved=True, actor=acting(people.stranger))
    assert answers == {("voted",): 1, ("approved",): 1, ("approval_not_found",): 1, ("not_allowed",): 1}


def test_the_loser_of_a_decision_is_a_lost_claim(tmp_path: Path, people: People) -> None:
    key = to_pause(write_spec(tmp_path, ASKING))[1]

    def too_late(*found: object) -> None:
        decide(key, approved=True, actor=acting(people.approver))

    with grown(CLAIMS_LOST) as lost, pytest.raises(AlreadyResolved):
        act_on(key, too_late)
    assert lost == {("decision",): 1}


def test_notices_are_counted_by_what_became_of_them(slack: FakeSlack, tmp_path: Path, people: People) -> None:
    spec = asking(tmp_path)
    slack.script[POST] = [{"error": "gone"}, {"json": {"ok": True, "channel": "C1", "ts": "1.1"}},
                          {"json": {"ok": False, "error": "is_archived"}}]  # fmt: skip
    with grown(metrics.NOTICES) as left:
        key = to_pause(spec)[1]
        sender.send_due()
        again()
        decide(key, approved=False, actor=acting(people.approver))
        Notice.objects.filter(about="closed").delete()
        to_pause(spec)
        sender.send_due()
        late = to_pause(spec)[1]
        decide(late, approved=False, actor=acting(people.approver))
        Notice.objects.filter(about="closed").delete()
        sender.send_due()
    assert left == {("slack", outcome): 1 for outcome in ("put_off", "sent", "failed", "dropped")}


def again() -> None:
    Notice.objects.filter(status=NoticeStatus.WAITING).update(due_at="2020-01-01T00:00:00Z")
    sender.send_due()
