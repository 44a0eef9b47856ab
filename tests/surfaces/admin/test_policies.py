"""Policies in the admin: what is offered to whom, and what a vote says, one by one and in bulk."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.models import ApprovalRequest, AuditEntry, Vote
from tests.approvals.policies import a_pay, a_sign, member
from tests.conftest import People
from tests.surfaces.admin.conftest import QUEUE, decide_url, run_url
from tests.surfaces.admin.test_bulk import BULK
from tests.workbench import acting, begin, to_pause, work
from workflows.models import Run, Status
from workflows.runs import newest

SignedIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asha(people: People) -> User:
    return member("asha", "finance")


def _pk(key: str) -> int:
    return ApprovalRequest.objects.get(key=key).pk


def _asked(browser: Client, act: str, *keys: str) -> Any:
    """The page that lists what was ticked."""
    shown = browser.post(BULK, {"act": act, "pick": [_pk(key) for key in keys]})
    assert shown.status_code == 200
    return shown


def _posted(browser: Client, act: str, *keys: str) -> Any:
    """Confirmed, whatever the page offered."""
    fields: dict[str, Any] = {"act": act, "confirmed": "yes", "pick": [_pk(key) for key in keys]}
    fields |= {f"digest-{_pk(key)}": ApprovalRequest.objects.get(key=key).digest for key in keys}
    return browser.post(BULK, fields)


def _told(page: Any) -> list[tuple[str, str]]:
    return [(result["badge"].text, result["told"]) for result in page.context["results"]]


def test_a_vote_in_bulk_says_that_it_counts_and_how_many_more_are_needed(
    tmp_path: Path, signed_in: SignedIn, people: People, asha: User
) -> None:
    _, three = to_pause(a_sign(tmp_path, "approvers: {quorum: 3}"))
    run, two = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}"))
    _, one = to_pause(a_sign(tmp_path, "approvers: {quorum: 1}"))
    # Approving is refused under a changed spec, and all three share a file: look at what was asked for.
    told = {}
    for key, quorum in ((three, 3), (two, 2), (one, 1)):
        a_sign(tmp_path, f"approvers: {{quorum: {quorum}}}")
        told[quorum] = _told(_posted(signed_in(people.approver), "approve", key))
    assert told[3] == [("counted", "Your approval counts. 2 more people must approve before the run goes on.")]
    assert told[2] == [("counted", "Your approval counts. 1 more person must approve before the run goes on.")]
    assert told[1] == [("done", "Approved. The run goes on.")]
    assert Vote.objects.count() == 2
    a_sign(tmp_path, "approvers: {quorum: 2}")
    assert _told(_posted(signed_in(asha), "approve", two)) == [("done", "Approved. The run goes on.")]
    assert newest(run).status == Status.QUEUED


def test_a_vote_on_the_page_says_the_same_and_shows_who_voted(
    tmp_path: Path, signed_in: SignedIn, people: People, asha: User
) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}"))
    browser, digest = signed_in(people.approver), ApprovalRequest.objects.get(key=key).digest
    page = browser.post(decide_url(key), {"verdict": "approve", "digest": digest}, follow=True).content.decode()
    assert "Your approval counts. 1 more person must approve" in page
    other = signed_in(asha).get(decide_url(key)).content.decode()
    assert "1 of 2 approved:" in other
    assert "<li>approver, <time" in other
    assert "2 people must approve" in other
    mine = browser.get(decide_url(key)).content.decode()
    assert "You may not approve this: you approved this already" in mine
    assert 'value="approve" disabled' in mine


def test_bulk_shows_and_does_not_offer_what_the_person_may_only_reject(
    tmp_path: Path, signed_in: SignedIn, asha: User
) -> None:
    spec = a_sign(tmp_path, "approvers: {four_eyes: true}")
    run, mine = to_pause(spec, actor=acting(asha))
    _, other = to_pause(spec)
    browser = signed_in(asha)
    shown = _asked(browser, "approve", mine, other)
    assert "You may not approve this: four eyes" in shown.content.decode()
    page = shown.content.decode()
    assert f'name="pick" value="{_pk(other)}"' in page
    assert f'name="pick" value="{_pk(mine)}"' not in page
    posted = _posted(browser, "approve", mine, other)
    assert [badge for badge, _ in _told(posted)] == ["done"]
    assert "1 of the ticked rows is not among those that you may act on" in posted.content.decode()
    assert newest(run).status == Status.AWAITING
    assert f'name="pick" value="{_pk(mine)}"' in _asked(browser, "reject", mine).content.decode()
    assert _told(_posted(browser, "reject", mine))[0][0] == "done"


def test_the_rows_of_another_group_are_neither_offered_nor_decided_nor_named(
    tmp_path: Path, signed_in: SignedIn, people: People, asha: User
) -> None:
    finance = a_sign(tmp_path, "approvers: {groups: [finance]}")
    run, key = to_pause(finance, input="their secret")
    browser = signed_in(people.approver)
    queue = browser.get(QUEUE).content.decode()
    assert f'value="{_pk(key)}"' not in queue, "no tick"
    assert "sign" in queue
    for answer in (_asked(browser, "approve", key), _posted(browser, "approve", key), _posted(browser, "reject", key)):
        assert "1 of the ticked rows is not among those that you may act on" in answer.content.decode()
        assert "Really?" not in answer.content.decode()
    assert newest(run).status == Status.AWAITING
    assert not AuditEntry.objects.exists()
    assert f'value="{_pk(key)}"' in signed_in(asha).get(QUEUE).content.decode()


def test_the_queue_asks_the_database_as_often_for_many_policies_as_for_one(
    tmp_path: Path, signed_in: SignedIn, asha: User
) -> None:
    spec = a_sign(tmp_path, "approvers: {groups: [finance], quorum: 2, four_eyes: true}")
    browser = signed_in(asha)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            assert browser.get(QUEUE).status_code == 200
        return len(caught)

    to_pause(spec)
    queries()
    before = queries()
    for number in range(12):
        to_pause(spec, input=f"case {number}")
    assert queries() == before


def test_somebody_who_only_looks_is_offered_nothing_and_a_post_by_hand_changes_nothing(
    tmp_path: Path, signed_in: SignedIn, people: People
) -> None:
    run, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}"))
    browser = signed_in(people.operator)
    page = browser.get(QUEUE).content.decode()
    assert 'name="pick"' not in page
    assert 'name="act"' not in page
    digest = ApprovalRequest.objects.get(key=key).digest
    assert _posted(browser, "approve", key).status_code == 403
    assert browser.post(decide_url(key), {"verdict": "approve", "digest": digest}).status_code == 403
    assert newest(run).status == Status.AWAITING
    assert not Vote.objects.exists()


def test_a_rejection_that_goes_on_is_promised_and_told_as_that(
    tmp_path: Path, signed_in: SignedIn, people: People
) -> None:
    spec = a_pay(tmp_path, "on_reject: continue, on_decision: {rejected: execute_tool(tell)}")
    (_, one), (_, two) = to_pause(spec), to_pause(spec)
    browser, digest = signed_in(people.approver), ApprovalRequest.objects.get(key=one).digest
    page = browser.get(decide_url(one)).content.decode()
    assert "First calls the tool “tell”. Nothing is sent. The run goes on with its next step" in page
    assert "ends as rejected" not in page
    told = browser.post(decide_url(one), {"verdict": "reject", "digest": digest}, follow=True).content.decode()
    assert "Rejected. The run goes on as its workflow says." in told
    assert _told(_posted(browser, "reject", two)) == [("done", "Rejected. The run goes on as its workflow says.")]


def test_what_no_run_waits_for_says_so_everywhere(tmp_path: Path, signed_in: SignedIn, people: People) -> None:
    spec = a_sign(tmp_path, "mode: record")
    for _ in range(2):
        begin(spec)
    work()
    one, two = (str(request.key) for request in ApprovalRequest.objects.order_by("id"))
    browser, digest = signed_in(people.approver), ApprovalRequest.objects.get(key=one).digest
    assert browser.get(QUEUE).content.decode().count("No run waits for it") == 2
    page = browser.get(decide_url(one)).content.decode()
    assert "It is kept as approved. No run waits for it." in page
    told = browser.post(decide_url(one), {"verdict": "approve", "digest": digest}, follow=True).content.decode()
    assert "Kept as approved. No run waited for it." in told
    assert _told(_posted(browser, "reject", two)) == [("done", "Kept as rejected. No run waited for it.")]
    assert Run.objects.count() == 2


def test_a_request_that_nobody_can_satisfy_says_so_on_its_page(
    tmp_path: Path, signed_in: SignedIn, people: People
) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {groups: [ghosts]}"))
    page = signed_in(people.approver).get(decide_url(key)).content.decode()
    assert "Nobody can satisfy this." in page
    assert "nobody of members of ghosts may approve today" in page
    assert "You may read this request and not decide it: this may be decided by members of ghosts only." in page


def test_the_page_of_a_run_leads_to_the_gate_that_it_waits_for_and_to_no_record(
    tmp_path: Path, signed_in: SignedIn, people: People
) -> None:
    run, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}"))
    record = ApprovalRequest.objects.get(key=key)
    record.pk, record.key, record.mode = None, uuid.uuid4(), "record"
    record.save(force_insert=True)
    page = signed_in(people.approver).get(run_url(run)).content.decode()
    assert decide_url(key) in page
    assert decide_url(str(record.key)) not in page
