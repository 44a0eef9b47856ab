"""The page where a person reads what will happen and decides it: what it shows, and every way it can be refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals import expiry
from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import scenes
from tests.surfaces.admin.conftest import QUEUE, decide_url, run_url
from tests.workbench import acting, key_of, to_pause, work
from workflows import beats
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import cancel_run, newest

SignedIn = Callable[[User], Client]
Waiting = tuple[Run, str]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approver(people: People, signed_in: SignedIn) -> Client:
    return signed_in(people.approver)


def _post(browser: Client, address: str, verdict: str, **fields: str) -> Any:
    shown = browser.get(address).context["digest"] if "digest" not in fields else fields.pop("digest")
    return browser.post(address, {"verdict": verdict, "digest": shown, "reason": "", **fields})


def test_a_summary_in_words_comes_before_the_table_and_that_before_raw_json(
    approver: Client, paying: SpecFile, tools: FakeTools, people: People
) -> None:
    _, key = to_pause(paying, actor=acting(people.requester), input="invoice 7")
    page = approver.get(decide_url(key)).content.decode()
    host = tools.url.removeprefix("http://")
    said = [
        f"Sends POST to {host} with the tool “pay”",
        "requester, less than a minute ago",
        "6 days 23 hours",
        f"{tools.url}/pay",
        "Bearer ${PAY_TOKEN}",
        "invoice 7",
        'name="verdict" value="approve"',
        "What the run knows so far",
        "<details",
    ]
    places = [page.find(text) for text in said]
    assert -1 not in places, said[places.index(-1)]
    assert places == sorted(places)
    assert "tok-canary" not in page


def test_a_variable_that_no_worker_has_is_told_before_the_approval(
    approver: Client, paying: SpecFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = to_pause(paying)
    assert "No running worker has <code>PAY_TOKEN</code>" in approver.get(decide_url(key)).content.decode()
    monkeypatch.setenv("PAY_TOKEN", "tok")
    beats.beat()
    assert "No running worker" not in approver.get(decide_url(key)).content.decode()


def test_an_approval_step_shows_its_message_and_a_guardrail_the_answer(
    approver: Client, waiting: Waiting, tmp_path: Path
) -> None:
    page = approver.get(decide_url(waiting[1])).content.decode()
    assert "Go on with go?" in page
    assert "Goes on after step “first”." in page
    _, key = scenes.waiting_at_guardrail(tmp_path)
    page = approver.get(decide_url(key)).content.decode()
    assert "confidence 0.41 is below the threshold 0.8" in page
    assert "Accepts the answer of step “classify” as it stands" in page
    assert "complaint" in page


def test_reading_changes_nothing(approver: Client, waiting: Waiting) -> None:
    before = ApprovalRequest.objects.values().get(key=waiting[1])
    for _ in range(2):
        assert approver.get(decide_url(waiting[1])).status_code == 200
        assert approver.head(decide_url(waiting[1])).status_code == 200
        assert approver.get(decide_url(waiting[1]) + "?verdict=approve").status_code == 200
    assert ApprovalRequest.objects.values().get(key=waiting[1]) == before
    assert not AuditEntry.objects.exists()


def test_approving_goes_to_the_run_that_goes_on(approver: Client, paying: SpecFile, tools: FakeTools) -> None:
    run, key = to_pause(paying)
    answer = _post(approver, decide_url(key), "approve", reason="checked")
    successor = newest(run)
    assert (answer.status_code, answer.headers["Location"]) == (302, run_url(successor))
    work()
    page = approver.get(run_url(successor)).content.decode()
    assert "Approved. The run goes on from here." in page
    assert "approved by approver" in page
    assert ": checked" in page
    successor.refresh_from_db()
    assert successor.status == Status.COMPLETED
    entry = AuditEntry.objects.get()
    assert (entry.surface, entry.reason, entry.digest_sent) == ("admin", "checked", True)
    assert [request.method for request in tools.requests] == ["GET", "POST", "POST"]


def test_rejecting_ends_the_run_without_a_call(approver: Client, paying: SpecFile, tools: FakeTools) -> None:
    run, key = to_pause(paying)
    assert _post(approver, decide_url(key), "reject", reason="too much").status_code == 302
    assert newest(run).status == Status.REJECTED
    assert "Rejected. The run has ended" in approver.get(run_url(newest(run))).content.decode()
    assert [request.method for request in tools.requests] == ["GET"]


def test_the_second_to_press_is_told_who_decided_and_sees_no_buttons(
    approver: Client, waiting: Waiting, people: People
) -> None:
    address = decide_url(waiting[1])
    decide(waiting[1], approved=False, reason="no", actor=acting(people.approver, "api"))
    answer = _post(approver, address, "approve", digest=ApprovalRequest.objects.get(key=waiting[1]).digest)
    page = answer.content.decode()
    assert answer.status_code == 404
    assert "Too late, this request is over: rejected by approver on" in page
    assert 'name="verdict"' not in page
    assert "Look at the run" in page
    assert waiting[1] not in page
    assert "This request is over: rejected by approver" in approver.get(address).content.decode()


def test_an_expired_and_a_cancelled_request_say_so_and_are_no_longer_offered(
    signed_in: SignedIn, asking: SpecFile, clock: Clock, people: People
) -> None:
    cancelled, cancelled_key = to_pause(asking)
    cancel_run(cancelled, actor=acting(people.operator), reason="not needed")
    _, key = to_pause(asking)
    clock.advance(8 * 86400)
    approver = signed_in(people.approver)
    for address, ending in ((decide_url(key), "expired on"), (decide_url(cancelled_key), "cancelled by operator")):
        page = approver.get(address)
        assert page.status_code == 200
        assert ending in page.content.decode()
        assert 'name="verdict"' not in page.content.decode()
        refused = _post(approver, address, "approve", digest="1:old")
        assert refused.status_code == 404
        assert f"this request is over: {ending}" in refused.content.decode()
    assert "Nothing waits for a decision" in approver.get(QUEUE).content.decode()
    assert expiry.expire_due() == 1
    assert "This request is over: expired on" in approver.get(decide_url(key)).content.decode()


def test_a_changed_spec_is_said_before_and_after_pressing_and_reject_still_works(
    approver: Client, paying: SpecFile
) -> None:
    run, key = to_pause(paying)
    text = paying.path.read_text()
    paying.path.write_text(text.replace("/pay", "/pay-more"))
    page = approver.get(decide_url(key))
    shown = page.content.decode()
    assert "The spec changed." in shown
    assert paying.hash[:12] in shown
    assert 'value="approve" disabled' in shown
    refused = _post(approver, decide_url(key), "approve", reason="keep my words")
    assert refused.status_code == 409
    said = refused.content.decode()
    assert page.context["present_hash"] in said
    assert "put the spec&#x27;s file back" in said
    assert "keep my words" in said
    run.refresh_from_db()
    assert run.status == Status.AWAITING
    paying.path.unlink()
    assert "the file is missing or invalid now" in approver.get(decide_url(key)).content.decode()
    assert _post(approver, decide_url(key), "reject").status_code == 302


def test_an_action_that_is_not_the_one_shown_is_shown_again_and_not_decided(approver: Client, paying: SpecFile) -> None:
    run, key = to_pause(paying)
    for old in ("1:" + "0" * 64, ""):
        refused = _post(approver, decide_url(key), "approve", digest=old)
        assert refused.status_code == 409
        page = refused.content.decode()
        assert "The action is not the one that you were shown" in page
        assert f'name="digest" value="{ApprovalRequest.objects.get(key=key).digest}"' in page
        assert "/pay" in page
    run.refresh_from_db()
    assert run.status == Status.AWAITING


def test_a_form_that_says_both_decides_nothing(approver: Client, waiting: Waiting) -> None:
    _, key = waiting
    digest = ApprovalRequest.objects.get(key=key).digest
    answer = approver.post(decide_url(key), {"verdict": ["reject", "approve"], "digest": digest, "reason": ""})
    assert answer.status_code == 400
    assert ApprovalRequest.objects.get(key=key).status == "open"


def test_no_verdict_and_too_long_a_reason_are_told_beside_the_form(approver: Client, waiting: Waiting) -> None:
    address = decide_url(waiting[1])
    for fields, said in (
        ({"verdict": ""}, "Press Approve or Reject"),
        ({"verdict": "maybe"}, "Press Approve or Reject"),
        ({"verdict": "approve", "reason": "x" * 4001}, "at most 4000 characters"),
        ({"verdict": "approve", "reason": "null \x00 inside"}, "eason"),
    ):
        answer = approver.post(address, {"digest": approver.get(address).context["digest"], **fields})
        assert answer.status_code == 400, fields
        assert said in answer.content.decode()
    waiting[0].refresh_from_db()
    assert waiting[0].status == Status.AWAITING


def test_a_run_that_waits_again_gets_a_page_of_its_own(approver: Client, waiting: Waiting) -> None:
    _post(approver, decide_url(waiting[1]), "approve")
    work()
    second = key_of(newest(waiting[0]))
    assert second != waiting[1]
    assert "clerk: second" in approver.get(decide_url(second)).content.decode()
    assert "approved by approver" in approver.get(decide_url(waiting[1])).content.decode()
