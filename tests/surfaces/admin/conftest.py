"""The admin as a signed-in person meets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from approvals.models import ApprovalRequest
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import scenes
from tests.surfaces.admin.browsing import browser, visit
from tests.workbench import PAYING_ANSWERS, to_pause
from workflows.models import Run
from workflows.registry import SpecFile

__all__ = ["browser", "visit"]

QUEUE = "/admin/approvals/approvalrequest/"
RUNS = "/admin/workflows/run/"


def decide_url(key: str) -> str:
    """The page where this key's request is decided."""
    return reverse("admin:approvals_approvalrequest_decide", args=[ApprovalRequest.objects.get(key=key).pk])


def run_url(run: Run) -> str:
    """The run's page."""
    return reverse("admin:workflows_run_change", args=[run.pk])


@pytest.fixture
def signed_in() -> Callable[[User], Client]:
    """`signed_in(people.approver)`: a browser's client with a session, and with CSRF checks as in life."""

    def client(user: User) -> Client:
        browser = Client()
        browser.force_login(user)
        return browser

    return client


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    """The services that the paying spec calls."""
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools({**PAYING_ANSWERS, "GET /broken": {"status": 500, "text": "out of order"}}) as server:
        yield server


@pytest.fixture
def asking(tmp_path: Path) -> SpecFile:
    return scenes.asking(tmp_path)


@pytest.fixture
def paying(tmp_path: Path, tools: FakeTools) -> SpecFile:
    return scenes.paying(tmp_path, tools.url)


@pytest.fixture
def waiting(asking: SpecFile) -> tuple[Run, str]:
    """A run at an approval step, and its key."""
    return to_pause(asking)
