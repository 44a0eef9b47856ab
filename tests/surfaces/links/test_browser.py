"""The page behind a signed link in a real browser: on a telephone, by keyboard, without JavaScript, by ear."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from approvals.models import AuditEntry
from approvals.services import decide
from tests.approvals.policies import a_sign, member
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import looks, scenes
from tests.surfaces.admin.browsing import SHOTS, barriers, browser, visit
from tests.surfaces.forms import answering
from tests.surfaces.links.conftest import link_of
from tests.workbench import PAYING_ANSWERS, acting, to_pause
from workflows.models import Run, Status
from workflows.runs import newest

__all__ = ["browser", "visit"]

DESK = {"width": 1280, "height": 900}
TELEPHONE = {"width": 390, "height": 844}
UNFOLD = "document.querySelectorAll('details').forEach(folded => { folded.open = true; })"

# how a page looks and is used has nothing to do with the database
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("postgres")]


def test_somebody_who_cannot_sign_in_to_the_admin_decides_on_a_telephone_by_keyboard_without_javascript(
    visit: Any, people: People, waiting: tuple[Run, str]
) -> None:
    User.objects.filter(pk=people.approver.pk).update(is_staff=False, first_name="Ana", last_name="Tan")
    run, key = waiting
    visitor = visit(java_script_enabled=False)
    page = visitor.page
    page.set_viewport_size(TELEPHONE)
    page.goto(link_of(key, people.approver))
    expect(page.get_by_text("You decide as Ana Tan (approver@example.org)")).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    assert newest(run).status == Status.AWAITING, "the browser itself asks for the tick"
    page.get_by_label("Reason").fill("as agreed")
    page.keyboard.press("Tab")
    expect(page.get_by_label("I am Ana Tan and I have read this")).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This request is over: approved by Ana Tan")).to_be_visible()
    assert AuditEntry.objects.get().reason == "as agreed"
    page.reload()
    expect(page.get_by_text("This request is over: approved by Ana Tan")).to_be_visible()
    assert AuditEntry.objects.count() == 1, "loading the answer again sends nothing again"


def test_the_address_of_the_link_goes_to_nobody(visit: Any, people: People, waiting: tuple[Run, str]) -> None:
    visitor = visit()
    asked: list[tuple[str, str]] = []
    visitor.page.on("request", lambda one: asked.append((one.url, one.headers.get("referer", ""))))
    link = link_of(waiting[1], people.approver)
    visitor.page.goto(link)
    visitor.page.get_by_role("link", name="Sign in").click()
    visitor.page.get_by_label("Username").wait_for()
    token = link.rsplit("/", 1)[1]
    assert len(asked) > 3
    assert [url for url, referer in asked if token in referer] == []


def _faults(page: Page, name: str) -> list[str]:
    found = []
    page.evaluate(UNFOLD)
    for size in (DESK, TELEPHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        found += [f"{name} {size['width']}: {fault}" for fault in [*barriers(page), *looks.faults(page)]]
        page.screenshot(path=SHOTS / f"link-{name}-{size['width']}.png", full_page=True)
    return found


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_every_state_is_free_of_barriers_large_and_small(
    visit: Any, people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, colours: str
) -> None:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    asha = member("asha")
    me = people.approver
    with FakeTools(PAYING_ANSWERS) as tools:
        _, pay = to_pause(scenes.paying(tmp_path, tools.url), actor=acting(people.requester), input="invoice 7")
    _, form = to_pause(answering(tmp_path, more="      require_reason: always\n"))
    _, long = to_pause(scenes.asking(tmp_path), input="a long story " * 3000)
    _, over = to_pause(scenes.asking(tmp_path))
    decide(over, approved=False, reason="no", actor=acting(asha))
    _, votes = to_pause(a_sign(tmp_path, "approvers: {quorum: 2, four_eyes: true}, require_reason: reject"))
    decide(votes, approved=True, actor=acting(asha))
    states = {
        "tool": link_of(pay, me),
        "form": link_of(form, me),
        "clipped": link_of(long, me),
        "votes": link_of(votes, me),
        "voted": link_of(votes, asha),
        "may-not": link_of(pay, people.operator),
        "over": link_of(over, me),
        "not-allowed": link_of(over, people.stranger),
        "wrong": re.sub(".$", "_", link_of(over, me)),
    }
    visitor = visit(color_scheme=colours)
    found = []
    for name, address in states.items():
        visitor.page.goto(address)
        found += _faults(visitor.page, f"{name}-{colours}")
    visitor.page.goto(states["form"])
    visitor.page.locator("#confirm").check()
    visitor.page.evaluate("document.querySelector('#decide').noValidate = true")
    visitor.page.get_by_role("button", name="Approve").click()
    expect(visitor.page.get_by_role("alert")).to_be_visible()
    found += _faults(visitor.page, f"form-wrong-{colours}")
    assert not found, "\n".join(found)
