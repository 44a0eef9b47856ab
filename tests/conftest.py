"""Fixtures that every suite shares: the clock, the people, child processes on the test database, measured facts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, make_password
from django.contrib.auth.models import Permission, User
from django.db import connection, transaction
from pytest_django import DjangoDbBlocker

from tests.emptying import Migrated, emptied_to
from tests.reporting import add_fact

ROOT = Path(__file__).resolve().parent.parent
PASSWORD = "a long enough password"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database, emptied quickly after each test that commits; its permissions are known by name."""
    with django_db_blocker.unblock():
        known = Permission.objects.values_list("content_type__app_label", "codename", "pk")
        _permissions.update({f"{app}.{codename}": pk for app, codename, pk in known})
        migrated = Migrated()
    with emptied_to(migrated), pytest.MonkeyPatch.context() as patch:
        patch.setattr(PBKDF2PasswordHasher, "iterations", 1_000)  # slow by design
        yield


class Clock:
    """The time of this test and of every process it starts, moved by writing one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.offset = 0.0
        self.reset()

    def advance(self, seconds: float) -> None:
        """Move the clock; a negative number turns it back."""
        self.offset += seconds
        beside = self._path.with_suffix(".new")
        beside.write_text(repr(self.offset), encoding="ascii")
        beside.replace(self._path)  # a reader meets the old number or the new one, never half of one

    def reset(self) -> None:
        """Back to the real time."""
        self.offset = 0.0
        self._path.unlink(missing_ok=True)


@pytest.fixture
def clock() -> Iterator[Clock]:
    """A clock at the real time, put back after the test."""
    clock = Clock(Path(os.environ["KAMPONG_CLOCK_FILE"]))
    yield clock
    clock.reset()


def database_url() -> str:
    """The URL of the database that the running test uses, for processes that share it."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


@pytest.fixture
def process_env(transactional_db: None) -> dict[str, str]:
    """The environment for a child process that works on this test's database, under this test's clock."""
    return dict(os.environ, DATABASE_URL=database_url(), PYTHONUNBUFFERED="1")


class Processes:
    """Starts `manage.py` commands on the test database and ends, by their ids, those that are left at the end."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = dict(env)
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
        """Start a command and return at once; its output is piped as text unless `options` say otherwise."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        process = subprocess.Popen(command, env=self.env | dict(env or {}), text=True, cwd=ROOT, **options)
        self._started.append(process)
        return process

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None, text: str = "", timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with `text` as its standard input."""
        process = self.start(*arguments, env=env, stdin=subprocess.PIPE)
        out, err = process.communicate(text, timeout=timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def end(self) -> None:
        """Kill what still runs, so that nothing holds the database when it is emptied."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait(30)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


@pytest.fixture
def manage(process_env: dict[str, str]) -> Iterator[Processes]:
    """`manage.start("worker")`, `manage.run("runs", "list")`: commands in processes of their own."""
    processes = Processes(process_env)
    yield processes
    processes.end()


@dataclass(frozen=True, kw_only=True)
class People:
    """The cast of every test about who may do what. All are staff, so that only permissions tell them apart."""

    approver: User
    requester: User
    stranger: User
    operator: User
    password: str = PASSWORD


ALLOWED = {
    "approver": ("approvals.view_request", "approvals.decide", "workflows.view_run"),
    "requester": ("workflows.start_run", "workflows.view_run"),
    "stranger": (),
    "operator": (
        "workflows.start_run",
        "workflows.view_run",
        "workflows.operate_run",
        "approvals.view_request",
        "approvals.rebind",
    ),
}


#: Every permission's id, by name (`approvals.decide`).
_permissions: dict[str, int] = {}
_Given = User.user_permissions.through


def _given(user: User, names: Iterable[str]) -> list[Any]:
    """The rows that say so."""
    for name in names:
        assert name in _permissions, f"no model declares the permission {name}"
    return [_Given(user_id=user.pk, permission_id=_permissions[name]) for name in names]


def allow(user: User, *names: str) -> User:
    """Give permissions by name (`approvals.decide`); returns the user afresh, as permissions are cached on it."""
    _Given.objects.bulk_create(_given(user, names), ignore_conflicts=True)
    return User.objects.get(pk=user.pk)


@pytest.fixture(scope="session")
def password_hash() -> str:
    """The people's password, hashed once."""
    return make_password(PASSWORD)


@pytest.fixture
def people(db: None, password_hash: str) -> People:
    """An approver, a requester, a stranger (signed in, allowed nothing) and an operator."""

    with transaction.atomic():
        users = {
            user.username: user
            for user in User.objects.bulk_create(
                User(username=name, password=password_hash, is_staff=True, email=f"{name}@example.org")
                for name in ALLOWED
            )
        }
        _Given.objects.bulk_create([row for name, user in users.items() for row in _given(user, ALLOWED[name])])
    return People(
        approver=users["approver"],
        requester=users["requester"],
        stranger=users["stranger"],
        operator=users["operator"],
    )


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """`report("50 rounds, one decision each")`: a measured fact for the proving report."""
    return lambda text: add_fact(request.node.nodeid, text)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium on this machine; the test is skipped by that name when there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
