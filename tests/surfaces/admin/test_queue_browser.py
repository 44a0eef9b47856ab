"""The queue in a real browser: a person clears it, by mouse, by keyboard, and on a telephone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.models import ApprovalRequest, AuditEntry
from approvals.queue import open_requests
from approvals.services import decide
from tests.approvals.policies import a_sign
from tests.conftest import People, allow
from tests.counts import count
from tests.surfaces.admin import looks, scenes
from tests.surfaces.admin.browsing import SHOTS, barriers, browser, visit
from tests.surfaces.admin.conftest import QUEUE
from tests.surfaces.forms import answering
from tests.workbench import PAYING, acting, to_pause, write_spec
from workflows.registry import SpecFile, read_spec

__all__ = ["browser", "visit"]

# how a page looks and is used has nothing to do with the database
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("postgres")]

TELEPHONE = {"width": 390, "height": 844}


def _mixed(folder: Path, people: People, number: int, url: str) -> None:
    """So many requests of five kinds: questions, a call, reasons that are needed, forms, and the same asked often."""
    (folder / "form").mkdir()
    (folder / "reason").mkdir()
    asking, paying = scenes.asking(folder, agent_id="asking"), write_spec(folder, PAYING, agent_id="payer", url=url)
    reason = a_sign(folder / "reason", "require_reason: always")
    form = _renamed(answering(folder / "form"), "former")
    for turn in range(number // 20):
        for case in range(8):
            to_pause(asking, input=f"case {turn}-{case}", actor=acting(people.requester))
        for _ in range(4):
            to_pause(asking, input="the monthly report")
        for case in range(4):
            to_pause(paying, input=f"invoice {turn}-{case}")
        for _ in range(3):
            to_pause(reason)
        to_pause(form, input=f"supplier {turn}")


def _renamed(spec: SpecFile, agent_id: str) -> SpecFile:
    spec.path.write_text(spec.path.read_text().replace("id: clerk", f"id: {agent_id}"))
    return read_spec(spec.path)


def _filter(page: Page, label: str, choice: str) -> None:
    field = page.get_by_label(f"{label}:", exact=True)
    counted = field.locator("option", has_text=re.compile(rf"^{choice} \(\d+\)$")).inner_text()
    field.select_option(label=counted)
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("behind these filters")).to_be_visible()


def _all_of_page(page: Page, act: str, reason: str = "") -> int:
    """Everything on the page at once; how many were done."""
    page.get_by_label("All on this page").check()
    return _ticked(page, act, reason)


def _ticked(page: Page, act: str, reason: str = "") -> int:
    """What is ticked; how many were done, which has to be all."""
    page.get_by_role("button", name=f"{act}…").click()
    page.get_by_label(re.compile("^Reason")).fill(reason)
    page.get_by_role("button", name=re.compile(f"^{act}: ")).click()
    title = page.get_by_role("heading", name=re.compile(f"^{act}: .* done$"))
    expect(title).to_be_visible()
    found = re.search(r": (\d+) of (\d+) done", title.inner_text())
    assert found is not None
    assert found[1] == found[2], "a click failed"
    page.get_by_role("link", name="Back to the list").click()
    return int(found[1])


def test_one_person_clears_a_mixed_queue_without_a_failed_click(
    visit: Any, people: People, tmp_path: Path, tools: Any, report: Any
) -> None:
    number = count(20, 100)
    _mixed(tmp_path, people, number, tools.url)
    visitor = visit()
    visitor.sign_in("approver")
    page: Page = visitor.page
    page.get_by_role("link", name="Open the queue").click()
    done = 0
    for workflow, act, reason in (("payer", "Approve", ""), ("clerk", "Reject", "not this month")):
        _filter(page, "Workflow", workflow)
        done += _all_of_page(page, act, reason)
        expect(page.get_by_text("No request fits these filters.")).to_be_visible()
        page.get_by_role("link", name="Clear").click()
    # What would do the same is one row, and one tick.
    page.get_by_label(re.compile(r"^All \d+ of asking, first: Go on with the monthly report")).check()
    done += _ticked(page, "Approve")
    page.get_by_label("Search").fill("SUPPLIER")
    page.get_by_label("Search").press("Enter")
    expect(page.get_by_text("behind these filters")).to_be_visible()
    for _ in range(number // 20):
        page.get_by_role("link", name="former").first.click()
        page.get_by_label("Amount to pay (needed)").fill("120")
        page.get_by_label("account (needed)").select_option(label="main")
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("Approved. The run goes on from here.")).to_be_visible()
        page.get_by_role("link", name=re.compile("^Waiting for you")).click()
        page.get_by_label("Search").fill("supplier")
        page.get_by_label("Search").press("Enter")
        expect(page.get_by_text("behind these filters")).to_be_visible()
        done += 1
    page.get_by_role("link", name="Clear").click()
    while open_requests().exists():
        done += _all_of_page(page, "Approve")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert done == number == ApprovalRequest.objects.filter(status="decided").count()
    assert AuditEntry.objects.filter(act="decide", surface="admin", actor="approver").count() == number
    report(f"one person cleared {number} mixed requests in the browser")


def test_the_keyboard_moves_ticks_opens_and_decides(visit: Any, people: People, asking: SpecFile) -> None:
    keys = [to_pause(asking, input=f"case {number}")[1] for number in range(4)]
    visitor = visit()
    visitor.sign_in("approver")
    page: Page = visitor.page
    page.goto(QUEUE)
    press = page.keyboard.press
    press("a")
    expect(page.get_by_role("status").filter(has_text="Tick at least one")).to_be_visible()
    for key in ("j", "j", "x", "j", "x", "k", "k", "x", "x"):
        press(key)
    ticked = page.locator("input[name=pick]:checked")
    expect(ticked).to_have_count(2)
    expect(page.get_by_text("With the ticked requests (2):")).to_be_visible()
    expect(page.locator("tr[aria-current]")).to_contain_text("case 0")
    press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    page.keyboard.type("jar?")
    expect(page.get_by_label("Search")).to_have_value("jar?")
    page.get_by_label("Search").fill("")
    page.get_by_label("Search").blur()
    press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.screenshot(path=SHOTS / "queue-keys-1280.png")
    assert barriers(page) == []
    press("Escape")
    press("r")
    page.get_by_role("button", name="Reject: 2 requests").click()
    expect(page.get_by_text("Reject: 2 of 2 done").first).to_be_visible()
    page.get_by_role("link", name="Back to the list").click()
    expect(page.get_by_text("2 wait for a decision")).to_be_visible()
    press("j")
    press("o")
    page.wait_for_url("**/decide/")
    expect(page.get_by_text("Go on with case 0?").first).to_be_visible()
    left = {str(key) for key in open_requests().values_list("key", flat=True)}
    assert left == {keys[0], keys[3]}


def test_what_changes_meanwhile_comes_in_and_ticks_and_place_stay(visit: Any, people: People, asking: SpecFile) -> None:
    """Without a socket: the server of this test has none, and the page asks instead."""
    keys = [to_pause(asking, input=f"case {number}")[1] for number in range(3)]
    visitor = visit()
    visitor.sign_in("approver")
    page: Page = visitor.page
    page.clock.install()
    page.goto(QUEUE)
    for key in ("j", "j", "x"):
        page.keyboard.press(key)
    decide(keys[0], approved=False, actor=acting(people.approver))
    to_pause(asking, input="case new")
    page.clock.fast_forward(12_000)
    page.clock.fast_forward(2_000)
    expect(page.get_by_role("cell", name="Go on with case new?", exact=True)).to_be_visible()
    expect(page.get_by_text("The list has changed: 1 new, 1 gone.")).to_be_visible()
    expect(page.get_by_text("case 0?")).to_have_count(0)
    expect(page.locator("input[name=pick]:checked")).to_have_count(1)
    expect(page.locator("tr[aria-current]")).to_contain_text("case 1")
    expect(page.locator("tr[aria-current] a.k-main")).to_be_focused()


def test_the_queue_can_be_read_on_every_screen(visit: Any, people: People, tmp_path: Path, tools: Any) -> None:
    allow(people.approver, "workflows.operate_run")
    _mixed(tmp_path, people, 20, tools.url)
    (tmp_path / "soon").mkdir()
    to_pause(a_sign(tmp_path / "soon", "expires_in: 40m, approvers: {groups: [ghosts]}"))
    visitor = visit()
    visitor.sign_in("approver")
    page: Page = visitor.page
    found: list[str] = []
    for name, query in {"queue-mixed": "", "queue-filtered": "?agent=asking&mine=me", "queue-none": "?q=zzz"}.items():
        page.goto(QUEUE + query)
        for size in (looks.WIDE, TELEPHONE):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            for scheme in ("dark", "light"):
                page.emulate_media(color_scheme=scheme)
                found += [f"{name} {size['width']} {scheme}: {fault}" for fault in looks.faults(page)]
            page.screenshot(path=SHOTS / f"{name}-{size['width']}.png")
            if name == "queue-mixed":
                page.screenshot(path=SHOTS / f"{name}-full-{size['width']}.png", full_page=True)
            found += [f"{name} {size['width']}: {barrier}" for barrier in barriers(page)]
            if name != "queue-none":
                assert looks.in_sight(page, "tr.k-row >> nth=0"), "the list begins on the first screen"
    assert not found, "\n".join(found)
