"""A real browser at this site, for the tests of the pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it ships no types
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.conftest import PASSWORD, ROOT
from tests.surfaces.admin import looks

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SHOTS = ROOT / "build" / "screenshots"
#: Milliseconds for a page to come after a click, on a machine that does much else.
PATIENCE = 30_000


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """One browser for a file. Its driver keeps an event loop in this thread, which Django would refuse to share."""
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    try:
        with sync_playwright() as driver:
            expect.set_options(timeout=PATIENCE)
            browser = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
            yield browser
            browser.close()
    finally:
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
        else:
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


class Visitor:
    """A page of the browser at this site; notes what a browser complains about and every request to elsewhere."""

    def __init__(self, browser: Browser, site: str, **options: Any) -> None:
        self.site = site
        self.context = browser.new_context(base_url=site, viewport=looks.WIDE, **options)  # type: ignore[arg-type]
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self._elsewhere(request.url))
        self.page.on("console", lambda message: self._said(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _elsewhere(self, url: str) -> None:
        if not url.startswith((self.site, "data:")):
            self.complaints.append(f"asked elsewhere: {url}")

    def _said(self, kind: str, text: str) -> None:
        # A page that answers 403, 404 or 409, or a favicon that is not there, is no fault of the page's text.
        if kind == "error" and not text.startswith("Failed to load resource: the server responded with a status of 4"):
            self.complaints.append(text)

    def sign_in(self, name: str) -> None:
        """As a person does."""
        self.page.goto("/admin/")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url("**/admin/")


@pytest.fixture
def visit(browser: Browser, live_server: Any) -> Iterator[Any]:
    visitors: list[Visitor] = []

    def start(**options: Any) -> Visitor:
        visitors.append(Visitor(browser, live_server.url, **options))
        return visitors[-1]

    yield start
    for visitor in visitors:
        visitor.context.close()
        assert visitor.complaints == []


_axe = Axe()


def barriers(page: Page) -> list[str]:
    """What axe finds that keeps somebody out: every serious or critical violation, with where it is."""
    found = _axe.run(page).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: {node['html'][:160]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
