"""The decision page for everybody: by ear, by keyboard, on a telephone, in every state that it has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import looks, states
from tests.surfaces.admin.browsing import SHOTS, barriers
from tests.surfaces.admin.conftest import QUEUE, run_url
from workflows.models import Run

DESK = {"width": 1280, "height": 900}
TELEPHONE = {"width": 390, "height": 844}
UNFOLD = "document.querySelectorAll('#content details').forEach(folded => { folded.open = true; })"

pytestmark = pytest.mark.django_db(transaction=True)


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
    addresses = states.plain(tmp_path, refunds.url, people)
    found = []
    for name, address in (addresses | {"queue": QUEUE, "run": run_url(Run.objects.latest("pk"))}).items():
        visitor.page.goto(address)
        visitor.page.evaluate(UNFOLD)
        found += _faults(visitor.page, name)
    assert not found, "\n".join(found)
