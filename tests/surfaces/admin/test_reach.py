"""The decision page for everybody: by ear, by keyboard, on a telephone, in every state that it has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from approvals.services import decide
from tests.approvals.policies import member
from tests.conftest import People, allow
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import looks, states
from tests.surfaces.admin.browsing import SHOTS, barriers
from tests.surfaces.admin.conftest import QUEUE, decide_url, run_url
from tests.workbench import acting, to_pause, work
from workflows.models import Run

DESK = {"width": 1280, "height": 900}
TELEPHONE = {"width": 390, "height": 844}
UNFOLD = "document.querySelectorAll('#content details').forEach(folded => { folded.open = true; })"

# how a page looks and is used has nothing to do with the database
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("postgres")]


@pytest.fixture
def refunds(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools(states.ANSWERS) as server:
        yield server


def _faults(page: Page, name: str) -> list[str]:
    """What is wrong with the page as it is open, on both sizes; leaves a picture of each."""
    found = []
    for size in (DESK, TELEPHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        found += [f"{name} {size['width']}: {fault}" for fault in [*barriers(page), *looks.faults(page)]]
        page.screenshot(path=SHOTS / f"reach-{name}-{size['width']}.png", full_page=True)
    return found


def test_every_state_is_free_of_barriers_large_and_small(
    visit: Any, people: People, refunds: FakeTools, tmp_path: Path
) -> None:
    visitor = visit()
    visitor.sign_in("approver")
    allow(people.approver, "approvals.rebind", "workflows.operate_run")
    addresses = states.addresses(tmp_path, refunds.url, people)
    found = []
    for name, address in (addresses | {"queue": QUEUE, "run": run_url(Run.objects.latest("pk"))}).items():
        visitor.page.goto(address)
        visitor.page.evaluate(UNFOLD)
        found += _faults(visitor.page, name)
    assert not found, "\n".join(found)


def test_a_change_is_previewed_by_keyboard_alone_and_approved_in_one_act(
    visit: Any, people: People, refunds: FakeTools, tmp_path: Path
) -> None:
    key = states.editable(tmp_path, refunds.url)
    visitor = visit(java_script_enabled=False)
    page = visitor.page
    visitor.sign_in("approver")
    page.goto(decide_url(key))
    _press(page, "Tab", until=page.get_by_label("action.body.json.amount"))
    for press in ("Control+A", "9", "0"):
        page.keyboard.press(press)
    page.keyboard.press("Enter")  # nothing is decided by it
    expect(page.get_by_text("This is your change.")).to_be_visible()
    expect(page.locator("#preview")).to_be_focused()
    expect(page.locator("#preview del")).to_have_text("120")
    expect(page.locator("#preview ins")).to_have_text("90")
    _press(page, "Tab", until=page.get_by_label("Reason"))
    page.keyboard.type("as agreed")
    _press(page, "Tab", until=page.get_by_role("button", name="Approve with the change"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("Approved. The run goes on from here.")).to_be_visible()
    work()
    assert [sent.json()["amount"] for sent in refunds.requests if sent.url.endswith("/refunds")] == [90]


def _press(page: Page, key: str, *, until: Locator, most: int = 60) -> None:
    """As often as it takes to reach that place."""
    for _ in range(most):
        page.keyboard.press(key)
        if until.evaluate("node => node === document.activeElement"):
            return
    raise AssertionError(f"{most} times {key} did not lead to {until}")


def test_what_appears_after_a_post_is_free_of_barriers_and_has_the_focus(
    visit: Any, people: People, refunds: FakeTools, tmp_path: Path
) -> None:
    visitor = visit()
    page = visitor.page
    visitor.sign_in("approver")
    page.goto(decide_url(states.editable(tmp_path, refunds.url)))
    page.get_by_label("action.body.json.letter").fill("Dear Bo,\nyou get 90 SGD back.\n\nThe refund desk")
    page.get_by_label("action.body.json.urgent").select_option("true")
    page.get_by_role("button", name="Preview the change").click()
    found = _faults(page, "preview")
    key = states.held_back(tmp_path, refunds.url, people)
    page.goto(decide_url(key))
    page.get_by_text("Break the glass", exact=True).click()
    page.get_by_role("button", name="Break the glass and approve").click()
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_label("Why it cannot wait")).to_have_accessible_description(re.compile("reason"))
    found += _faults(page, "glass-wrong")
    page.get_by_label("Why it cannot wait").fill("the bank closes")
    page.get_by_role("button", name="Break the glass and approve").click()
    expect(page.get_by_text("Approved. The run goes on from here.")).to_be_visible()
    page.goto(decide_url(key))
    expect(page.get_by_text("broke the glass and approved")).to_be_visible()
    assert not found, "\n".join(found)


def test_the_loser_of_a_race_reads_who_won_and_finds_no_buttons(
    visit: Any, people: People, refunds: FakeTools, tmp_path: Path
) -> None:
    visitor = visit()
    page = visitor.page
    visitor.sign_in("approver")
    _, key = to_pause(states.refunding(tmp_path, refunds.url), input="case 118")
    page.goto(decide_url(key))
    decide(key, approved=True, reason="mine", actor=acting(member("chitra"), "api"))
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("alert")).to_contain_text("Too late, this request is over: approved by chitra on")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.locator("button[name=verdict]")).to_have_count(0)
    found = _faults(page, "race")
    assert not found, "\n".join(found)
