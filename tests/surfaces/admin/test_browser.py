"""The pages in a real browser: the whole journey, and what can be measured of how they look."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.services import decide
from tests.conftest import Clock, People, Processes, allow
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import looks, scenes
from tests.surfaces.admin.browsing import PATIENCE, SHOTS
from tests.surfaces.admin.conftest import QUEUE, RUNS, decide_url, run_url
from tests.surfaces.forms import answering
from tests.workbench import acting, begin, to_pause, work
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest

# how a page looks and is used has nothing to do with the database
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("postgres")]


def test_a_person_signs_in_reads_approves_with_a_reason_and_sees_the_run_go_on(
    visit: Any, people: People, paying: SpecFile, tools: FakeTools, manage: Processes
) -> None:
    run, _ = to_pause(paying, actor=acting(people.requester), input="invoice 7")
    manage.start("worker")
    visitor = visit()
    visitor.sign_in("approver")
    page = visitor.page
    page.get_by_role("link", name="Open the queue").click()
    page.get_by_role("link", name="payer").click()
    expect(page.get_by_text("Sends POST to")).to_be_visible()
    assert looks.in_sight(page, "button[value=approve]")
    assert looks.in_sight(page, "button[value=reject]")
    page.get_by_label("Reason").fill("checked with the supplier")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved. The run goes on from here.")).to_be_visible()
    page.locator("h1 .k-badge", has_text="completed").wait_for(timeout=PATIENCE)
    expect(page.get_by_text("checked with the supplier")).to_be_visible()
    assert newest(run).status == Status.COMPLETED
    assert [request.method for request in tools.requests] == ["GET", "POST", "POST"]


def test_without_javascript_on_a_telephone_it_is_the_same(visit: Any, people: People, asking: SpecFile) -> None:
    run, _ = to_pause(asking)
    visitor = visit(java_script_enabled=False)
    page = visitor.page
    page.set_viewport_size(looks.NARROW)
    visitor.sign_in("approver")
    page.get_by_role("link", name="Open the queue").click()
    page.get_by_role("checkbox", name="clerk, first").check()
    page.get_by_role("button", name="Reject…").click()
    page.get_by_label("Reason").fill("not this year")
    page.get_by_role("button", name="Reject: 1 request").click()
    expect(page.get_by_text("Rejected. The run has ended.")).to_be_visible()
    assert newest(run).status == Status.REJECTED


def test_a_form_is_filled_in_by_keyboard_without_javascript_on_a_telephone(
    visit: Any, people: People, tmp_path: Path
) -> None:
    run, key = to_pause(answering(tmp_path), input="invoice 7")
    visitor = visit(java_script_enabled=False)
    page = visitor.page
    page.set_viewport_size(looks.NARROW)
    visitor.sign_in("approver")
    page.goto(decide_url(key))
    page.screenshot(path=SHOTS / "decide-form-360.png", full_page=True)
    page.get_by_label("Amount to pay (needed)").fill("900")
    page.get_by_role("button", name="Approve").click()
    assert page.url.endswith(decide_url(key))  # the browser itself holds an amount over the bound back
    page.get_by_label("Amount to pay (needed)").focus()
    for press in ("Control+A", "1", "2", "0", "Tab", "m", "Tab"):
        page.keyboard.press(press)
    page.get_by_label("copies").press("Tab")
    page.get_by_label("note").fill("two\nlines")
    page.get_by_label("reference").fill("seven")
    page.get_by_label("urgent").press("Space")
    page.get_by_role("group", name="tell").get_by_label("vendor").check()
    page.get_by_role("group", name="address").get_by_label("city").fill("Ipoh")
    page.get_by_role("button", name="Approve").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was decided")
    expect(page.get_by_label("reference")).to_have_accessible_description(re.compile("must match the pattern"))
    expect(page.get_by_label("note")).to_have_value("two\nlines")
    page.screenshot(path=SHOTS / "decide-form-wrong-360.png", full_page=True)
    page.get_by_label("reference").fill("R-7")
    page.get_by_role("button", name="Approve").press("Enter")
    expect(page.get_by_text("Approved. The run goes on from here.")).to_be_visible()
    work()
    assert newest(run).status == Status.COMPLETED
    page.goto(run_url(newest(run)))
    expect(page.get_by_text("Ipoh").first).to_be_attached()


def test_a_form_without_a_look_at_a_field_can_still_be_rejected(visit: Any, people: People, tmp_path: Path) -> None:
    run, key = to_pause(answering(tmp_path))
    visitor = visit()
    visitor.sign_in("approver")
    visitor.page.goto(decide_url(key))
    visitor.page.get_by_role("button", name="Reject").click()
    expect(visitor.page.get_by_text("Rejected. The run has ended")).to_be_visible()
    assert newest(run).status == Status.REJECTED


def _look(page: Page, name: str, address: str) -> list[str]:
    """What is wrong with this page, large and small, light and dark. Leaves a picture of each size."""
    found = []
    page.goto(address)
    for size in (looks.WIDE, looks.NARROW):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            found += [f"{name} {size['width']} {scheme}: {fault}" for fault in looks.faults(page)]
        page.screenshot(path=SHOTS / f"{name}-{size['width']}.png", full_page=size is looks.NARROW)
    return found


def _scenes(folder: Path, people: People, tools: FakeTools, paying: SpecFile, asking: SpecFile) -> dict[str, str]:
    """The address of every page worth looking at, by name."""
    _, pay = to_pause(paying, actor=acting(people.requester), input="invoice 7 " + "x" * 90)
    waiting, ask = to_pause(asking)
    _, judge = scenes.waiting_at_guardrail(folder)
    told = {tool: to_pause(scenes.telling(folder, tool), input=scenes.LETTER)[1] for tool in ("tell", "write", "part")}
    done, second = to_pause(paying)
    decide(second, approved=True, reason="checked", actor=acting(people.approver, "admin"))
    work()
    lost, failed = scenes.interrupted(paying), scenes.failed(folder, tools.url)
    changed, changed_key = to_pause(scenes.asking(folder, agent_id="changed"))
    Path(changed.source).write_text(Path(changed.source).read_text().replace("Go on with", "Do not go on with"))
    queued = begin(asking)
    Run.objects.filter(pk=queued.pk).update(started_by="somebody with a very long name " * 3)
    return {
        "index": "/admin/",
        "queue": QUEUE,
        "decide-form": decide_url(to_pause(answering(folder))[1]),
        "decide-tool": decide_url(pay),
        "decide-approval": decide_url(ask),
        "decide-guardrail": decide_url(judge),
        "decide-slack": decide_url(told["tell"]),
        "decide-mail": decide_url(told["write"]),
        "decide-component": decide_url(told["part"]),
        "decide-changed": decide_url(changed_key),
        "decide-over": decide_url(second),
        "runs": RUNS,
        "run-waiting": run_url(waiting),
        "run-completed": run_url(newest(done)),
        "run-interrupted": run_url(lost),
        "run-failed": run_url(failed),
        "run-queued": run_url(queued) + "?refresh=off",
        "act-retry": f"{RUNS}{lost.pk}/act/retry/",
        "audit": "/admin/approvals/auditentry/",
        "error": f"{QUEUE}99999/decide/",
    }


def test_every_page_fits_a_telephone_has_large_targets_and_enough_contrast(
    visit: Any, people: People, paying: SpecFile, asking: SpecFile, tools: FakeTools, tmp_path: Path
) -> None:
    allow(people.approver, "workflows.operate_run", "approvals.view_auditentry")
    visitor = visit()
    visitor.sign_in("approver")
    found = _look(visitor.page, "queue-empty", QUEUE)
    addresses = _scenes(tmp_path, people, tools, paying, asking)
    for name, address in addresses.items():
        if name != "index":  # its list of models is Django's own, with Django's sizes
            found += _look(visitor.page, name, address)
    assert not found, "\n".join(found)
    visitor.page.set_viewport_size(looks.WIDE)
    for name in ("decide-tool", "decide-approval", "decide-guardrail", "decide-changed", "decide-mail"):
        visitor.page.goto(addresses[name])
        assert looks.in_sight(visitor.page, "button[value=approve]"), name
        assert looks.in_sight(visitor.page, "button[value=reject]"), name


def test_a_page_left_open_until_the_request_expired_says_so_without_buttons(
    visit: Any, people: People, asking: SpecFile, clock: Clock
) -> None:
    _, key = to_pause(asking)
    visitor = visit()
    visitor.sign_in("approver")
    page = visitor.page
    page.goto(decide_url(key))
    clock.advance(7 * 86400 + 60)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Too late, this request is over: expired")).to_be_visible()
    expect(page.locator("button[name=verdict]")).to_have_count(0)
    found = _look(page, "decide-expired", decide_url(key))
    assert not found, "\n".join(found)
