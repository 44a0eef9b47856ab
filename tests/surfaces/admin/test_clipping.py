"""What is too long for the page: how much is shown, all of it beside the buttons, and what the audit says then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from approvals import looking, records
from approvals.admin import words
from approvals.models import ApprovalRequest, AuditEntry, Look
from approvals.services import decide
from tests.approvals.policies import member
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import scenes, states
from tests.surfaces.admin.conftest import decide_url
from tests.workbench import acting, to_pause
from workflows.engine import jsontext

SignedIn = Callable[[User], Client]
LONG = "many words " * 3000

# what is drawn is the same on both
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("sqlite")]


@pytest.fixture
def refunds(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools({**states.ANSWERS, "GET /invoice": {"json": {"note": LONG, "more": ["<b>", LONG]}}}) as server:
        yield server


@pytest.fixture
def approver(people: People, signed_in: SignedIn) -> Client:
    return signed_in(people.approver)


def _long(folder: Path, tools: FakeTools, policy: str = "") -> str:
    return to_pause(states.refunding(folder, tools.url, policy, letter=LONG), input=states.INPUT)[1]


def _whole(key: str) -> str:
    return reverse("admin:approvals_approvalrequest_whole", args=[ApprovalRequest.objects.get(key=key).pk])


def _output(key: str, number: int) -> str:
    return reverse("admin:approvals_approvalrequest_output", args=[ApprovalRequest.objects.get(key=key).pk, number])


def _decide(browser: Client, key: str, verdict: str = "approve") -> Any:
    digest = ApprovalRequest.objects.get(key=key).digest
    return browser.post(decide_url(key), {"verdict": verdict, "digest": digest})


def test_a_clipped_action_says_how_much_is_shown_and_offers_all_of_it_twice(
    approver: Client, refunds: FakeTools, tmp_path: Path
) -> None:
    key = _long(tmp_path, refunds)
    request = ApprovalRequest.objects.get(key=key)
    record = records.peek(request)
    assert record is not None
    whole = looking.whole(record)
    page = approver.get(decide_url(key)).content.decode()
    assert f"clipped, 20,000 of {len(whole):,} characters" in page
    action, decision = page.split("k-decide", 1)
    assert _whole(key) in action
    assert _whole(key) in decision.split("</aside>")[0]
    assert 'value="approve" aria-describedby="clipped"' in page
    shown = approver.get(decide_url(key)).context["rows"]
    parts = words.rows_of("tool", record["action"])
    left_out = sum(len(row.value.full or row.value.short) for row in parts) - sum(
        len(row.value.full or row.value.short) for row in shown
    )
    assert left_out == len(whole) - 20_000
    assert "Bo Müller" in page, "what is short stays whole"


def test_the_download_is_what_is_stored_and_is_kept_by_nobody(
    approver: Client, refunds: FakeTools, tmp_path: Path
) -> None:
    key = _long(tmp_path, refunds)
    answer = approver.get(_whole(key))
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="request-')
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in answer.headers["Cache-Control"]
    assert answer.headers["Content-Type"] == "application/json"
    assert jsontext.loads(answer.content.decode())["action"]["body"]["json"]["letter"] == LONG
    assert "tok-canary" not in answer.content.decode()


def test_an_earlier_output_that_is_clipped_has_a_download_of_its_own(
    approver: Client, refunds: FakeTools, tmp_path: Path
) -> None:
    key = _long(tmp_path, refunds)
    page = approver.get(decide_url(key)).content.decode()
    assert "Clipped, 20,000 of 66," in page
    assert _output(key, 0) in page
    answer = approver.get(_output(key, 0))
    assert answer.headers["Content-Disposition"].endswith('output-1.json"')
    assert jsontext.loads(answer.content.decode()) == {"note": LONG, "more": ["<b>", LONG]}
    assert approver.get(_output(key, 1)).status_code == 404
    assert not Look.objects.exists(), "an output is not the action"


def test_the_audit_says_whether_the_decider_opened_all_of_it(
    approver: Client, signed_in: SignedIn, refunds: FakeTools, tmp_path: Path
) -> None:
    one, two, three = (_long(tmp_path, refunds) for _ in range(3))
    assert approver.head(_whole(two)).status_code == 200
    for site in ("cross-site", "same-site"):  # another site's link is not this person's wish to read it
        assert approver.get(_whole(two), headers={"Sec-Fetch-Site": site}).status_code == 200
    assert not Look.objects.exists(), "asking for the size is not looking"
    assert signed_in(member("chitra")).get(_whole(two)).status_code == 200
    for _ in range(2):
        assert approver.get(_whole(one)).status_code == 200
    assert "You opened all of it." in approver.get(decide_url(one)).content.decode()
    assert "You opened all of it." not in approver.get(decide_url(two)).content.decode()
    assert Look.objects.count() == 2
    assert _decide(approver, one).status_code == 302
    assert _decide(approver, two, "reject").status_code == 302
    decide(three, approved=True, actor=acting(member("dan"), "api"))
    told = {entry.key: jsontext.loads(entry.details or "{}") for entry in AuditEntry.objects.filter(act="decide")}
    assert told[one] == {"clipped": True, "opened": True}
    assert told[two] == {"clipped": True, "opened": False}, "another person's look is not mine"
    assert told[three] == {}, "over HTTP everything is in the answer"
    assert "opened the whole of it" in approver.get(decide_url(one)).content.decode()


def test_a_look_at_an_earlier_version_is_none_at_this_one(people: People, refunds: FakeTools, tmp_path: Path) -> None:
    request = ApprovalRequest.objects.get(key=_long(tmp_path, refunds))
    record = records.peek(request)
    assert record is not None
    looking.look(request, people.approver.pk, "1:before")
    told = looking.proof(request, record, acting(people.approver, "admin"))
    assert told == {"clipped": True, "opened": False}


def test_a_vote_says_it_as_well(approver: Client, refunds: FakeTools, tmp_path: Path) -> None:
    key = _long(tmp_path, refunds, "approvers: {quorum: 2}")
    assert _decide(approver, key).status_code == 302
    assert jsontext.loads(AuditEntry.objects.get(act="vote").details) == {"clipped": True, "opened": False}


@pytest.mark.parametrize(
    ("letter", "told"),
    [("x" * 200, {}), ("x" * 201, {"clipped": True, "opened": False}), ("a\\nb", {}), ("&" * 190, {})],
)
def test_a_card_in_slack_shows_less_and_the_audit_knows_how_much(
    refunds: FakeTools, tmp_path: Path, letter: str, told: dict[str, bool]
) -> None:
    _, key = to_pause(states.refunding(tmp_path, refunds.url, letter=letter), input=states.INPUT)
    decide(key, approved=True, actor=acting(member("dan"), "slack"))
    assert jsontext.loads(AuditEntry.objects.get(act="decide").details or "{}") == told


def test_what_fits_is_not_called_clipped(approver: Client, refunds: FakeTools, tmp_path: Path) -> None:
    _, key = to_pause(states.refunding(tmp_path, refunds.url), input=states.INPUT)
    page = approver.get(decide_url(key)).content.decode()
    assert "This is a part of it" not in page
    assert _decide(approver, key).status_code == 302
    assert AuditEntry.objects.get(act="decide").details == ""


def test_a_long_question_is_clipped_and_a_download_too(approver: Client, tmp_path: Path) -> None:
    _, key = to_pause(scenes.asking(tmp_path, message="w" * 30_000))
    page = approver.get(decide_url(key)).content.decode()
    assert "You see a part of it:" in page
    assert "w" * 20_000 + "…" in page
    assert "w" * 20_001 not in page
    assert "w" * 30_000 in approver.get(_whole(key)).content.decode()


def test_downloads_are_for_those_who_may_read_the_page_and_of_what_still_waits(
    approver: Client, signed_in: SignedIn, people: People, refunds: FakeTools, tmp_path: Path
) -> None:
    key = _long(tmp_path, refunds)
    for address in (_whole(key), _output(key, 0)):
        assert signed_in(people.operator).get(address).status_code == 200
        for stranger in (people.stranger, people.requester):
            assert signed_in(stranger).get(address).status_code == 403
        assert Client().get(address).status_code == 302
    assert approver.get("/admin/approvals/approvalrequest/99999/whole/").status_code == 404
    assert _decide(approver, key, "reject").status_code == 302
    for address in (_whole(key), _output(key, 0)):
        assert approver.get(address).status_code == 404


@pytest.mark.parametrize(
    ("sizes", "budget", "share"),
    [([10, 20, 30], 60, 30), ([10, 20, 30], 45, 17), ([10, 100, 100], 110, 50), ([5], 0, 0), ([], 5, 0), ([9], -1, 0)],
)
def test_the_longest_values_are_cut_first(sizes: list[int], budget: int, share: int) -> None:
    assert words.shares(sizes, budget) == share
    assert sum(min(size, share) for size in sizes) <= max(0, budget)
