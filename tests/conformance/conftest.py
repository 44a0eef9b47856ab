"""A person who may do everything, and a process that has read no spec yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from pytest_django import Settings

from tests.conformance.deciding import FreshProcesses
from tests.conformance.service import Service, forget
from tests.conftest import ROOT, database_url


@pytest.fixture
def everybody(transactional_db: None) -> User:
    """One user with every permission, each given by name: none comes from being a superuser."""
    user = User.objects.create(username="case", email="case@example.org")
    user.user_permissions.set(Permission.objects.all())
    return user


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    """The folder of the one served spec; nothing that an earlier test read is remembered, and nothing is kept."""
    settings.KAMPONG_SPECS = [str(tmp_path)]
    forget()
    yield tmp_path
    forget()


@pytest.fixture
def service(everybody: User, folder: Path) -> Iterator[Service]:
    """HTTP, and a worker."""
    service = Service(everybody)
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="session")
def elsewhere(django_db_setup: None) -> Iterator[FreshProcesses]:
    """Decisions in fresh processes on the test database."""
    processes = FreshProcesses(os.environ | {"DATABASE_URL": database_url()}, ROOT)
    yield processes
    processes.close()
