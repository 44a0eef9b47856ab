"""What else can be done on the decision page: hand on, break the glass, bind to a changed spec, cancel, take back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApprovalRequest, AuditEntry, Delegation
from tests.approvals.policies import member
from tests.conftest import People, allow
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import states
from tests.surfaces.admin.conftest import decide_url
from tests.workbench import to_pause, work
from workflows.engine import jsontext
from workflows.models import Run, Status
from workflows.runs import newest

SignedIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def refunds(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools(states.ANSWERS) as server:
        yield server


def _post(browser: Client, key: str, verdict: str, **fields: str) -> Any:
    digest = ApprovalRequest.objects.get(key=key).digest
    return browser.post(decide_url(key), {"verdict": verdict, "digest": digest, **fields})


def _page(browser: Client, key: str) -> str:
    page: str = browser.get(decide_url(key)).content.decode()
    return page


# Handing on --------------------------------------------------------------------------------------------------


@pytest.fixture
def handable(tmp_path: Path, refunds: FakeTools) -> str:
    """A request of the desk that can be handed on."""
    policy = "approvers: {groups: [desk], delegate: true}"
    return to_pause(states.refunding(tmp_path, refunds.url, policy), input=states.INPUT)[1]


def test_who_may_decide_hands_it_to_one_of_those_offered_and_both_may(handable: str, signed_in: SignedIn) -> None:
    mine, theirs = signed_in(member("asha", "desk")), signed_in(member("nora"))
    member("ben", "desk")
    page = _page(mine, handable)
    assert "<option>nora</option>" in page
    assert "<option>ben</option>" not in page, "who may decide already is not offered"
    assert 'value="approve"' not in _page(theirs, handable)
    answer = _post(mine, handable, "delegate", to="nora", reason="I am away")
    assert (answer.status_code, answer.headers["Location"]) == (302, decide_url(handable))
    assert "handed it to nora" in _page(mine, handable)
    assert 'value="approve"' in _page(theirs, handable)
    assert "Hand it to somebody else" not in _page(theirs, handable), "it goes no further"
    assert _post(theirs, handable, "approve").status_code == 302


def test_who_cannot_take_it_is_told_at_the_field_and_nothing_is_kept(handable: str, signed_in: SignedIn) -> None:
    mine = signed_in(member("asha", "desk"))
    member("nora")
    for to in ("", "ghost", "asha"):
        page = _post(mine, handable, "delegate", to=to, reason="I am away <b>")
        text = page.content.decode()
        assert page.status_code == 400
        assert 'id="hand-to-error"' in text
        assert 'aria-describedby="hand-help hand-to-error" aria-invalid="true"' in text
        assert "I am away &lt;b&gt;" in text
        assert '<details class="k-more k-aside-part" open>' in text
    assert not Delegation.objects.exists()


def test_what_cannot_be_handed_on_is_not_offered(tmp_path: Path, refunds: FakeTools, signed_in: SignedIn) -> None:
    _, key = to_pause(states.refunding(tmp_path, refunds.url), input=states.INPUT)
    mine = signed_in(member("asha"))
    member("nora")
    assert "Hand it to somebody else" not in _page(mine, key)
    assert _post(mine, key, "delegate", to="nora").status_code == 403


# Breaking the glass ------------------------------------------------------------------------------------------


def test_breaking_the_glass_needs_its_permission_and_a_reason_and_is_marked(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    key = states.held_back(tmp_path, refunds.url, people)
    browser = signed_in(people.approver)
    page = _page(browser, key)
    assert "You approve this alone" in page
    assert 'value="approve" disabled' in page
    refused = _post(browser, key, "break_glass", glass_reason="", reason="the other field")
    assert refused.status_code == 400
    assert 'id="glass-reason-error"' in refused.content.decode()
    assert 'href="#glass-reason"' in refused.content.decode()
    assert ">the other field</textarea>" in refused.content.decode()
    assert _post(browser, key, "break_glass", glass_reason="the bank closes").status_code == 302
    entry = AuditEntry.objects.get(act="decide")
    assert (entry.outcome, entry.reason) == ("approved", "the bank closes")
    assert jsontext.loads(entry.details) == {"glass_broken": True}
    assert "broke the glass and approved" in _page(browser, key)


def test_the_glass_is_not_there_for_others_nor_where_nothing_holds_back(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    key = states.held_back(tmp_path, refunds.url, people)
    other = signed_in(member("asha"))
    assert "Break the glass" not in _page(other, key)
    assert _post(other, key, "break_glass", glass_reason="please").status_code == 403
    _, free = to_pause(states.refunding(tmp_path, refunds.url, agent="free"), input=states.INPUT)
    assert "Break the glass" not in _page(signed_in(people.approver), free)
    assert not AuditEntry.objects.exists()


# A changed spec ----------------------------------------------------------------------------------------------


def test_a_changed_spec_is_shown_step_by_step_with_where_it_lies(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    key = states.drifted(tmp_path, refunds.url)
    page = signed_in(people.approver).get(decide_url(key))
    steps = {part.name: part.badge.text for part in page.context["steps"]}
    assert steps["look up the invoice"] == "the same"
    assert (steps["sign off"], steps["sign"]) == ("taken away", "added")
    assert [(part.name, part.badge.text) for part in page.context["others"]] == [("tool refund", "changed")]
    text = page.content.decode()
    assert "The changes lie in several places" in text
    assert "<del>120</del>" in text
    assert "<ins>1200</ins>" in text
    assert "the permission approvals.rebind is needed" in text
    assert "Cancel the run" not in text


def test_binding_needs_its_permission_and_a_reason_and_shows_what_would_run_now(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    key = states.drifted(tmp_path, refunds.url)
    approver, operator = signed_in(people.approver), signed_in(people.operator)
    assert _post(approver, key, "rebind", reason="it is right").status_code == 403
    refused = _post(operator, key, "rebind", reason=" ")
    assert refused.status_code == 400
    assert 'href="#rebind-reason"' in refused.content.decode()
    assert _post(operator, key, "rebind", reason="it is right", digest="1:old").status_code == 409
    answer = _post(operator, key, "rebind", reason="it is right")
    assert (answer.status_code, answer.headers["Location"]) == (302, decide_url(key))
    page = _page(approver, key)
    assert "The spec changed." not in page
    assert "Why this is asked again" in page
    assert "<ins>1200</ins>" in page
    assert "bound it to the changed spec" in page
    assert _post(approver, key, "approve").status_code == 302
    work()
    assert [sent.json()["amount"] for sent in refunds.requests if sent.url.endswith("/refunds")] == [1200]


def test_whoever_started_the_run_may_not_bind_it(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    allow(people.approver, "approvals.rebind")
    key = states.drifted(tmp_path, refunds.url)
    Run.objects.update(started_by_user_id=people.approver.pk)
    browser = signed_in(people.approver)
    assert "whoever started the run may not bind it to a changed spec" in _page(browser, key)
    assert _post(browser, key, "rebind", reason="mine").status_code == 403


def test_an_operator_cancels_the_run_from_here_and_later_clicks_are_told_by_whom(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    key = states.drifted(tmp_path, refunds.url)
    assert _post(signed_in(people.approver), key, "cancel").status_code == 403
    operator = signed_in(people.operator)
    assert "Cancel the run" in _page(operator, key)
    answer = _post(operator, key, "cancel", reason="start it again")
    assert (answer.status_code, answer.headers["Location"]) == (302, decide_url(key))
    assert newest(ApprovalRequest.objects.get(key=key).run).status == Status.CANCELLED
    assert "This request is over: cancelled by operator" in _page(operator, key)
    late = _post(signed_in(people.approver), key, "approve")
    assert late.status_code == 404
    assert "cancelled by operator" in late.content.decode()
    assert 'name="verdict"' not in late.content.decode()


def test_a_file_that_is_put_back_is_approved_as_before(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    key = states.drifted(tmp_path, refunds.url)
    browser = signed_in(people.approver)
    assert _post(browser, key, "approve").status_code == 409
    states.refunding(tmp_path, refunds.url, agent="drifted")
    assert "The spec changed." not in _page(browser, key)
    assert _post(browser, key, "approve").status_code == 302


# Taking it back ----------------------------------------------------------------------------------------------


def test_an_approval_is_taken_back_with_a_reason_while_there_is_time(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    run, key = to_pause(states.refunding(tmp_path, refunds.url, "recall: 10m"), input=states.INPUT)
    browser = signed_in(people.approver)
    answer = _post(browser, key, "approve")
    assert (answer.status_code, answer.headers["Location"]) == (302, decide_url(key))
    page = _page(browser, key)
    assert "It can be taken back until" in page
    assert "9 minutes left" in page
    assert work() == 0, "nothing runs meanwhile"
    refused = _post(browser, key, "withdraw", reason="")
    assert refused.status_code == 400
    assert 'id="withdraw-reason-error"' in refused.content.decode()
    reader = signed_in(people.operator)
    assert "You may not withdraw it" in _page(reader, key)
    assert _post(reader, key, "withdraw", reason="no").status_code == 403
    answer = _post(browser, key, "withdraw", reason="the wrong account")
    again = str(ApprovalRequest.objects.get(reopened_from=key).key)
    assert (answer.status_code, answer.headers["Location"]) == (302, decide_url(again))
    assert "took the approval back" in _page(browser, again)
    assert "The approval was taken back, so it is asked again." in _page(browser, key)
    assert newest(run).status == Status.AWAITING
    assert not [sent for sent in refunds.requests if sent.method == "POST"]
