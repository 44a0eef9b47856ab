"""The pages of what runs alone in a real browser: by ear, on a telephone, light and dark, and without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.models import AuditEntry
from statestore.models import StateRecord
from tests.conftest import People, allow
from tests.counts import count
from tests.databases import PROVE
from tests.surfaces.admin import looks, unattended
from tests.surfaces.admin.browsing import SHOTS, barriers
from tests.surfaces.admin.conftest import RUNS
from tests.surfaces.admin.unattended import FILES, STORE, TRIGGERS, incident, item, page_of, put, reset_url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with unattended.served(tmp_path):
        yield tmp_path


def _faults(page: Page, name: str) -> list[str]:
    """What is wrong with the page as it is open, large and small, light and dark; a proving run leaves pictures."""
    found = []
    for size in (looks.WIDE, looks.NARROW):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            found += [f"{name} {size['width']} {scheme}: {fault}" for fault in looks.faults(page)]
            if PROVE:
                page.screenshot(path=SHOTS / f"alone-{name}-{size['width']}-{scheme}.png", full_page=True)
    return found + [f"{name}: {barrier}" for barrier in barriers(page)]


def _pages(folder: Path) -> dict[str, str]:
    run = str(unattended.house(folder).uuid)
    value = {"summary": "sda1 has 2 % left " * 12, "hosts": ["db-1", "db-2"]}
    first = incident(run, "disk full on db-1.example.org, and what comes with it", value)
    incident("4f6b2c1e-0000-4000-8000-000000000000", "short", "x")
    for number in range(55):
        item(run, f"order {number}")
    put("market", "once:k", {"run": run}, 60)
    rows = {row.key: row.pk for row in StateRecord.objects.all()}
    return {
        "triggers": TRIGGERS,
        "files": FILES,
        "incidents": STORE,
        "reset-cursor": reset_url(rows["cursor:poll"]),
        "poll": page_of("orders"),
        "schedule": page_of("market"),
        "runs": RUNS,
        "locks": STORE + "?kind=locks",
        "cursors": STORE + "?kind=cursors",
        "seen": STORE + "?kind=seen",
        "once": STORE + "?kind=once",
        "none": STORE + "?kind=deliveries",
        "reset-incident": reset_url(first),
        "reset-lock": reset_url(rows["lock:schedule"]),
    }


@pytest.mark.only("sqlite")  # how a page looks has nothing to do with the database
def test_every_page_is_free_of_barriers_and_fits_large_and_small(visit: Any, people: People, folder: Path) -> None:
    allow(people.approver, "workflows.operate_run")
    visitor = visit()
    visitor.sign_in("approver")
    page = visitor.page
    page.goto(TRIGGERS)
    found = _faults(page, "triggers-none")
    for name, address in list(_pages(folder).items())[: count(4, 99)]:
        page.goto(address)
        found += _faults(page, name)
    (folder / "market.yaml").write_text("version: [")
    page.goto(page_of("market"))
    found += _faults(page, "schedule-broken")
    page.goto("/admin/")
    page.screenshot(path=SHOTS / "alone-index.png", full_page=True)
    assert not found, "\n".join(found)


def test_an_incident_is_closed_without_javascript_on_a_telephone(visit: Any, people: People, folder: Path) -> None:
    allow(people.approver, "workflows.operate_run")
    incident(str(unattended.house(folder).uuid))
    visitor = visit(java_script_enabled=False)
    page = visitor.page
    page.set_viewport_size(looks.NARROW)
    visitor.sign_in("approver")
    page.get_by_role("link", name="Store").click()
    page.get_by_role("link", name="Close… disk full").click()
    page.get_by_label("Reason").fill("mended by hand")
    page.get_by_role("button", name="Close the incident").click()
    expect(page.get_by_text("The incident was closed.")).to_be_visible()
    expect(page.get_by_text("No incident is open.")).to_be_visible()
    assert AuditEntry.objects.get().reason == "mended by hand"
    page.get_by_role("link", name="Locks").click()
    page.get_by_role("link", name="Free… market").click()
    StateRecord.objects.filter(key="lock:schedule").update(value='{"run": "another", "due": ""}')
    page.get_by_label("Reason").fill("it hangs")
    page.get_by_role("button", name="Free the lock").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was changed")
    assert AuditEntry.objects.count() == 1
