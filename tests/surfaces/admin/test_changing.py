"""Changing what waits on the decision page: the change is seen before it is approved, or proposed to somebody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApprovalRequest, AuditEntry, Edit, Vote
from tests.approvals.policies import member
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import states
from tests.surfaces.admin.conftest import decide_url
from tests.workbench import to_pause, work
from workflows.engine import jsontext

SignedIn = Callable[[User], Client]
LETTER = "Dear Bo,\r\nwe are sorry that the parcel came late.\r\nYou get 120 SGD back.\r\n\r\nThe refund desk"
#: What a browser sends of the fields when nothing was typed: amount, letter, urgent, currency.
AS_IT_STANDS = {"edits.0": "120", "edits.1": LETTER, "edits.2": "false", "edits.3": "SGD"}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def refunds(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools(states.ANSWERS) as server:
        yield server


@pytest.fixture
def approver(people: People, signed_in: SignedIn) -> Client:
    return signed_in(people.approver)


def _post(browser: Client, key: str, verdict: str, **typed: str) -> Any:
    request = ApprovalRequest.objects.get(key=key)
    fields = {name.replace("edits_", "edits."): value for name, value in typed.items()}
    return browser.post(
        decide_url(key), {**AS_IT_STANDS, "digest": request.digest, "reason": "", "verdict": verdict, **fields}
    )


def _sent(tools: FakeTools) -> list[dict[str, Any]]:
    return [sent.json() for sent in tools.requests if sent.url.endswith("/refunds")]


def _lines(page: Any) -> list[tuple[str, str, str]]:
    """What the preview marks: the kind of the line, before and now."""
    return [
        (line.kind, line.before.mark if line.before else "", line.now.mark if line.now else "")
        for line in page.context["preview"].lines
        if line.kind not in ("same", "skipped")
    ]


def test_a_preview_shows_the_difference_and_decides_and_keeps_nothing(
    approver: Client, refunds: FakeTools, tmp_path: Path
) -> None:
    key = states.editable(tmp_path, refunds.url)
    before = ApprovalRequest.objects.values().get(key=key)
    letter = LETTER.replace("120", "90")
    page = _post(approver, key, "preview", edits_0="90", edits_1=letter, edits_2="true", reason="kept")
    assert page.status_code == 200
    assert _lines(page) == [("changed", "120", "90"), ("changed", "false", "true"), ("changed", "120", "90")]
    text = page.content.decode()
    assert "Nothing is decided yet" in text
    assert "Approve with the change" in text
    assert 'value="90"' in text
    assert ">kept</textarea>" in text
    assert ApprovalRequest.objects.values().get(key=key) == before
    assert not AuditEntry.objects.exists()
    assert not Edit.objects.exists()


def test_a_change_that_was_not_seen_is_shown_and_not_approved(
    approver: Client, refunds: FakeTools, tmp_path: Path
) -> None:
    key = states.editable(tmp_path, refunds.url)
    shown = _post(approver, key, "approve", edits_0="90")
    assert shown.status_code == 200
    assert _lines(shown) == [("changed", "120", "90")]
    other = _post(approver, key, "approve", edits_0="80", previewed=shown.context["previewed"])
    assert other.status_code == 200, "another change than the one that was seen"
    assert not AuditEntry.objects.exists()
    answer = _post(approver, key, "approve", edits_0="80", previewed=other.context["previewed"], reason="agreed")
    assert answer.status_code == 302
    work()
    assert [body["amount"] for body in _sent(refunds)] == [80]
    assert _sent(refunds)[0]["letter"] == LETTER.replace("\r\n", "\n"), "what was not changed stays what it was"
    told = jsontext.loads(AuditEntry.objects.get(act="decide").details)
    assert told["edits"] == {"action.body.json.amount": {"before": 120, "after": 80}}


def test_fields_as_they_stand_are_no_change(approver: Client, refunds: FakeTools, tmp_path: Path) -> None:
    key = states.editable(tmp_path, refunds.url)
    nothing = _post(approver, key, "preview")
    assert nothing.status_code == 400
    assert "Nothing is changed yet" in nothing.content.decode()
    assert _post(approver, key, "approve").status_code == 302
    assert AuditEntry.objects.get(act="decide").details == ""


@pytest.mark.parametrize(
    ("typed", "place", "told"),
    [
        ({"edits_0": "much"}, "edits-0", "must be a number"),
        ({"edits_2": "perhaps"}, "edits-2", "must be true or false"),
    ],
)
def test_what_does_not_fit_is_told_at_its_field_and_led_to(
    approver: Client, refunds: FakeTools, tmp_path: Path, typed: dict[str, str], place: str, told: str
) -> None:
    key = states.editable(tmp_path, refunds.url)
    for verdict in ("preview", "approve"):
        page = _post(approver, key, verdict, **typed, reason="kept")
        text = page.content.decode()
        assert page.status_code == 400
        assert f'href="#{place}"' in text
        assert f'id="{place}-error"' in text
        assert told in text
        assert ">kept</textarea>" in text
    assert not AuditEntry.objects.exists()


def test_an_old_page_is_refused_before_its_change_is_read(approver: Client, refunds: FakeTools, tmp_path: Path) -> None:
    key = states.editable(tmp_path, refunds.url)
    for verdict in ("preview", "approve"):
        page = _post(approver, key, verdict, edits_0="90", digest="1:old")
        assert page.status_code == 409
        assert "not the one that you were shown" in page.content.decode()


def test_under_four_eyes_a_change_is_proposed_and_somebody_else_approves_it(
    approver: Client, signed_in: SignedIn, refunds: FakeTools, tmp_path: Path
) -> None:
    key = states.editable(tmp_path, refunds.url, four_eyes=True)
    shown = _post(approver, key, "preview", edits_0="90")
    assert 'value="propose"' in shown.content.decode()
    assert "Approve with the change" not in shown.content.decode()
    answer = _post(
        approver, key, "propose", edits_0="90", previewed=shown.context["previewed"], reason="that is what we owe"
    )
    assert (answer.status_code, answer.headers["Location"]) == (302, decide_url(key))
    mine = approver.get(decide_url(key)).content.decode()
    assert "whoever proposed the edit may not approve it" in mine
    other = signed_in(member("chitra"))
    page = other.get(decide_url(key)).content.decode()
    assert "<strong>approver</strong> changed it" in page
    assert "that is what we owe" in page
    assert "<del>120</del>" in page
    assert "<ins>90</ins>" in page
    assert "changed the action" in page
    assert _post(other, key, "approve", edits_0="90").status_code == 302
    work()
    assert [body["amount"] for body in _sent(refunds)] == [90]


def test_where_several_must_approve_a_change_counts_as_a_vote_and_voids_those_before(
    approver: Client, signed_in: SignedIn, refunds: FakeTools, tmp_path: Path
) -> None:
    policy = "editable: [action.body.json.amount], approvers: {quorum: 2}"
    _, key = to_pause(states.refunding(tmp_path, refunds.url, policy), input=states.INPUT)
    first = signed_in(member("chitra"))
    assert _post(first, key, "approve").status_code == 302
    shown = _post(approver, key, "preview", edits_0="90")
    assert "A change voids the approvals given before it." in shown.content.decode()
    assert _post(approver, key, "approve", edits_0="90", previewed=shown.context["previewed"]).status_code == 302
    assert [vote.label for vote in Vote.objects.all()] == ["approver"]
    assert _post(first, key, "approve", edits_0="90").status_code == 302
    work()
    assert [body["amount"] for body in _sent(refunds)] == [90]


def test_who_may_not_decide_gets_no_fields_and_no_preview(
    signed_in: SignedIn, people: People, refunds: FakeTools, tmp_path: Path
) -> None:
    key = states.editable(tmp_path, refunds.url)
    reader = signed_in(people.operator)
    assert 'name="edits.0"' not in reader.get(decide_url(key)).content.decode()
    for verdict in ("preview", "propose", "approve"):
        page = _post(reader, key, verdict, edits_0="90")
        assert page.status_code == 403, verdict
        assert page.context.get("preview") is None
    assert not AuditEntry.objects.exists()


def test_a_preview_of_what_is_over_says_so(approver: Client, refunds: FakeTools, tmp_path: Path) -> None:
    key = states.editable(tmp_path, refunds.url)
    assert _post(approver, key, "reject", edits_0="90").status_code == 302, "a rejection leaves what was typed aside"
    page = _post(approver, key, "preview", edits_0="90")
    assert page.status_code == 404
    assert "this request is over: rejected by approver" in page.content.decode()
