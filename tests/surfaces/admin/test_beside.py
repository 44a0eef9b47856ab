"""Runs that were called beside another, and runs that wait for a recall or waited for one, as pages show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApprovalRequest
from approvals.recall import withdraw
from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_pay, a_sign
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin.conftest import RUNS, run_url
from tests.workbench import acting, begin, to_pause, work
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def services() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


@pytest.fixture
def operator(people: People, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(people.operator)


def test_the_pages_of_both_link_to_each_other(
    tmp_path: Path, services: FakeTools, people: People, operator: Client
) -> None:
    run = begin(a_sign(tmp_path, "mode: record, on_decision: {approved: execute_tool(tell)}", url=services.url))
    work()
    key = str(ApprovalRequest.objects.get(run=run).key)
    companion = decide(key, approved=True, actor=acting(people.approver)).run
    work()
    first, second = (operator.get(run_url(one)).content.decode() for one in (run, companion))
    assert run_url(companion) in first
    assert run_url(run) in second
    assert "the decision that run" in second
    assert "sign.on_decision" in second


def test_the_page_of_a_run_says_that_it_waits_for_its_recall_and_that_it_was_withdrawn(
    tmp_path: Path, services: FakeTools, people: People, operator: Client
) -> None:
    run, key = to_pause(a_pay(tmp_path, "recall: 10m", url=services.url))
    stopped = decide(key, approved=True, actor=acting(people.approver)).run
    assert "while its approval can be withdrawn" in operator.get(run_url(stopped)).content.decode()
    withdraw(key, actor=acting(people.approver), reason="wrong sum")
    page = operator.get(run_url(stopped)).content.decode()
    assert "its approval was withdrawn by approver: wrong sum" in page
    assert "withdrawn by approver" in page
    assert run_url(newest(run)) in page
    assert [row["run"] for row in operator.get(RUNS).context["rows"]] == [newest(run)]
