"""What the races share: the counting service, the paying spec and the eight who press."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tests.conftest import ALLOWED, allow
from tests.fakes_tools import FakeTools
from tests.workbench import PAYING, PAYING_ANSWERS, write_spec
from workflows.registry import SpecFile


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    """The outside service; it counts."""
    monkeypatch.setenv("PAY_TOKEN", "tok-races")
    with FakeTools(PAYING_ANSWERS) as service:
        yield service


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the specs of a server lie."""
    path = tmp_path / "specs"
    path.mkdir()
    return path


@pytest.fixture
def spec(folder: Path, tools: FakeTools) -> SpecFile:
    """look - pay (asks) - receipt."""
    return write_spec(folder, PAYING, url=tools.url)


@pytest.fixture
def eight(people: object, password_hash: str) -> list[User]:
    """Eight approvers, so that the one who won can be told by name."""
    users = [
        User.objects.create(username=f"approver-{number}", password=password_hash, is_staff=True)
        for number in range(1, 9)
    ]
    return [allow(user, *ALLOWED["approver"]) for user in users]
