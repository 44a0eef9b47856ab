"""Pages that stay open on a real `serve`: changes come in without a reload, and a server that ends says goodbye."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from approvals.models import ApprovalRequest
from statestore.models import StateRecord
from tests.approvals.policies import a_sign
from tests.conftest import Clock, People, Processes
from tests.served import Served
from tests.surfaces.admin.browsing import Visitor, browser
from tests.surfaces.admin.conftest import QUEUE, RUNS
from tests.surfaces.live.conftest import cookie_of, socket
from tests.workbench import acting, to_pause
from workflows.registry import SpecFile
from workflows.runs import cancel_run

__all__ = ["browser"]

# how a page looks and is used has nothing to do with the database
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("postgres")]


@pytest.fixture
def served(manage: Processes, tmp_path: Path) -> Served:
    return Served(manage, tmp_path, "--web-only", "--no-migrate")


@pytest.fixture
def visitors(browser: Browser, served: Served) -> Iterator[Any]:
    """Somebody's browser at the real server, signed in."""
    opened: list[Visitor] = []

    def start(name: str) -> Page:
        opened.append(Visitor(browser, served.url))
        opened[-1].sign_in(name)
        return opened[-1].page

    yield start
    for visitor in opened:
        visitor.context.close()
        assert visitor.complaints == []
    assert served.trouble() == []


def test_list_count_and_header_come_to_zero_without_a_reload(
    visitors: Any, people: People, clerk: SpecFile, tmp_path: Path, clock: Clock
) -> None:
    _, expiring = to_pause(a_sign(tmp_path, "expires_in: 1h"))
    run, _ = to_pause(clerk, input="cancelled")
    _, removed = to_pause(clerk, input="removed")
    page, elsewhere = visitors("approver"), visitors("approver")
    page.goto(QUEUE)
    elsewhere.goto(RUNS)
    count, above = page.locator(".k-lead strong").first, "#k-waiting strong"
    expect(count).to_have_text("3")
    expect(elsewhere.locator(above)).to_have_text("3")
    page.evaluate("window.sameDocument = true")
    cancel_run(run, actor=acting(people.operator), reason="off")
    expect(count).to_have_text("2")
    expect(page.get_by_text("The list has changed: 1 gone.")).to_be_visible()
    clock.advance(3700)
    expect(count).to_have_text("1")
    StateRecord.objects.filter(key=f"approval:{removed}").delete()
    ApprovalRequest.objects.filter(key=removed).delete()
    expect(page.get_by_text("Nothing waits for a decision.")).to_be_visible()
    for one in (page, elsewhere):
        expect(one.locator(above)).to_have_text("0")
    to_pause(clerk, input="something new")
    expect(page.get_by_role("cell", name="Go on with something new?", exact=True)).to_be_visible()
    for one in (page, elsewhere):
        expect(one.locator(above)).to_have_text("1")
    assert page.evaluate("window.sameDocument") is True
    assert expiring


def test_a_server_that_ends_closes_its_sockets_and_ends_in_time(
    served: Served, people: People, clerk: SpecFile
) -> None:
    to_pause(clerk)
    with socket(served.url, headers=cookie_of(people.approver), origin=served.url) as opened:
        assert opened.next()["waiting"] == 1
        served.process.terminate()
        assert opened.closed() in (1001, 1012)
    assert served.process.wait(30) == 0
    assert served.trouble() == []
