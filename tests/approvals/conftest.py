"""Who changes and decides payments, and the service that is paid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tests.approvals.editables import ANSWERS, a_payment
from tests.approvals.policies import member
from tests.conftest import allow
from tests.fakes_tools import FakeTools
from workflows.registry import SpecFile


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    """The service, and the environment by which a payment reaches it."""
    with FakeTools(ANSWERS) as tools:
        monkeypatch.setenv("PAY_HOST", tools.url)
        monkeypatch.setenv("PAY_TOKEN", "tok-canary")
        yield tools


@pytest.fixture
def spec(tmp_path: Path, tools: FakeTools) -> SpecFile:
    """A payment that one person decides, and may change."""
    return a_payment(tmp_path, tools.url)


@pytest.fixture
def asha(db: None) -> User:
    """Who may decide."""
    return member("asha")


@pytest.fixture
def ben(db: None) -> User:
    """Who may decide as well."""
    return member("ben")


@pytest.fixture
def olga(db: None) -> User:
    """Who may rebind, and nothing else."""
    return allow(User.objects.create(username="olga"), "approvals.rebind")
