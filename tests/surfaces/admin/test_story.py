"""What comes next and what happened, on the decision page; and the difference of two versions, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.admin import ahead, difference, history
from approvals.models import ApprovalRequest
from approvals.services import decide
from tests.approvals.policies import a_pay, a_sign, member
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import states
from tests.surfaces.admin.conftest import decide_url
from tests.workbench import acting, begin, key_of, to_pause, work
from workflows.engine.values import Json
from workflows.runs import newest

SignedIn = Callable[[User], Client]

# what is drawn is the same on both
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("sqlite")]


@pytest.fixture
def refunds(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools(states.ANSWERS) as server:
        yield server


def _request(key: str) -> ApprovalRequest:
    return ApprovalRequest.objects.select_related("run").get(key=key)


def test_the_next_steps_are_named_with_what_they_do_and_the_rest_is_counted(tmp_path: Path, refunds: FakeTools) -> None:
    _, key = to_pause(states.refunding(tmp_path, refunds.url), input=states.INPUT)
    told = ahead.ahead_of(_request(key))
    assert [(step.name, step.does) for step in told.steps] == [
        ("write the receipt", "calls the tool “receipt” (POST)"),
        ("is it large", "checks a condition, then asks a person or calls the tool “receipt” (POST)"),
        ("mail the customer", "asks a person again, then calls the tool “mail” (POST)"),
        ("sign off", "asks a person again"),
        ("archive", "calls the tool “receipt” (POST)"),
    ]
    assert told.more == 2
    assert told.nobody == "the run ends as expired"


@pytest.mark.parametrize(
    ("policy", "after_no", "nobody"),
    [
        ("on_reject: continue", True, "the run ends as expired"),
        ("on_expire: reject", False, "the run ends as rejected"),
        ("on_expire: fail", False, "the run ends as failed"),
    ],
)
def test_what_a_rejection_and_the_end_of_time_do_is_said(
    tmp_path: Path, people: People, signed_in: SignedIn, policy: str, after_no: bool, nobody: str
) -> None:
    _, key = to_pause(a_pay(tmp_path, policy))
    told = ahead.ahead_of(_request(key))
    assert (told.after_no, told.nobody) == (after_no, nobody)
    page = signed_in(people.approver).get(decide_url(key)).content.decode()
    assert ("and after a rejection too" in page) is after_no
    assert f", {nobody}." in page


def test_the_last_step_and_what_no_run_waits_for_have_nothing_after_them(
    tmp_path: Path, people: People, signed_in: SignedIn
) -> None:
    begin(a_sign(tmp_path, "mode: record"))
    work()
    told = ahead.ahead_of(ApprovalRequest.objects.select_related("run").get())
    assert (told.steps, told.nobody) == ((), "it is closed as expired")


def test_the_history_names_votes_stand_ins_and_the_decision_with_their_reasons(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    key = states.voted(tmp_path, refunds.url)
    told = [(line.who, line.what, line.more, line.reason) for line in history.history_of(_request(key)).lines]
    assert told == [
        ("starter", "started the run", "", ""),
        ("Step “pay it back”", "asked for a decision", "", ""),
        ("chitra", "handed it to dan", "", "I am on a train"),
        ("asha", "approved, as one of several", "", "fine by me"),
        ("dan", "approved, as one of several", "was handed this by chitra", ""),
    ]
    page = signed_in(people.approver).get(decide_url(key)).content.decode()
    assert "2 of 3 approved:" in page
    assert "<li>dan for chitra, <time" in page


def test_the_history_goes_back_through_the_whole_chain_and_leads_to_its_requests(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn
) -> None:
    spec = states.refunding(tmp_path, refunds.url, "require_reason: always")
    run, first = to_pause(spec, input="a large case")
    decide(first, approved=True, reason="go <b>on</b>", actor=acting(people.approver, "slack"))
    work()
    second = key_of(newest(run))
    lines = history.history_of(_request(second)).lines
    assert [(line.who, line.what, line.mine) for line in lines] == [
        ("starter", "started the run", False),
        ("Step “pay it back”", "asked for a decision", False),
        ("approver", "approved (step “pay it back”)", False),
        ("Step “is it large”", "asked for a decision", True),
    ]
    assert lines[2].link == decide_url(first)
    page = signed_in(people.approver).get(decide_url(second)).content.decode()
    assert "go &lt;b&gt;on&lt;/b&gt;" in page


def test_the_page_asks_the_database_as_often_for_much_as_for_little(
    tmp_path: Path, refunds: FakeTools, people: People, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = signed_in(people.approver)

    def queries(key: str) -> int:
        with CaptureQueriesContext(connection) as caught:
            assert browser.get(decide_url(key)).status_code == 200
        return len(caught)

    run, first = to_pause(states.refunding(tmp_path, refunds.url), input="a large case")
    queries(first)  # what is asked once in a process
    little = queries(first)
    decide(first, approved=True, actor=acting(people.approver, "slack"))
    for _ in range(2):
        work()
        key = key_of(newest(run))
        decide(key, approved=True, reason="on", actor=acting(people.approver, "slack"))
    work()
    last = key_of(newest(run))
    assert len(history.history_of(_request(last)).lines) == 8
    assert queries(last) <= little


def test_more_than_can_be_read_is_counted(tmp_path: Path, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 2)
    _, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 4}"))
    for name in ("asha", "ben", "chitra"):
        decide(key, approved=True, actor=acting(member(name), "api"))
    told = history.history_of(_request(key))
    assert [line.who for line in told.lines] == ["ben", "chitra"]
    assert told.earlier == 3


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        ({"a": 1, "b": "x"}, {"a": 2, "b": "x"}, [("changed", "1", "2"), ("same", "", "")]),
        ({"a": "one two three"}, {"a": "one six three"}, [("changed", "two", "six")]),
        ({"a": "one\ntwo"}, {"a": "one\n  extra\ntwo"}, [("same", "", ""), ("same", "", ""), ("added", "", "extra")]),
        ([1, 2], [1], [("same", "", ""), ("removed", "[1]: 2", "")]),
        ({}, {"a": None}, [("changed", "{}", "a: null")]),
        ("safe\u202e", "safe", [("changed", "safe\\u202e", "safe")]),
    ],
)
def test_two_versions_are_compared_line_by_line(before: Json, now: Json, lines: list[tuple[str, str, str]]) -> None:
    found = [
        (line.kind, line.before.mark if line.before else "", line.now.mark if line.now else "")
        for line in difference.between(before, now).lines
    ]
    assert found[: len(lines)] == lines


def test_lines_far_from_a_difference_are_counted_and_too_many_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    before: list[Json] = list(range(30))
    told = difference.between(before, [*before[:15], "new", *before[16:]])
    assert [(line.kind, line.count) for line in told.lines] == [
        ("skipped", 13),
        ("same", 0),
        ("same", 0),
        ("changed", 0),
        ("same", 0),
        ("same", 0),
        ("skipped", 12),
    ]
    assert difference.between(before, before).same
    monkeypatch.setattr(difference, "MOST_LINES", 10)
    assert difference.between(before, before).note == "Clipped: the first 10 of 30 lines are compared."
