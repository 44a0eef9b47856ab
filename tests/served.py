"""A real `serve` on the test database: what it says is kept in files, so that no pipe fills up and all can be read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from approvals.tokens import create_token
from tests.conftest import Processes

ADDRESS = re.compile(r"runs at (http://127\.0\.0\.1:\d+)/")
#: What no server may have logged, whatever was done to it.
TROUBLE = re.compile(r"database is locked|Traceback|answered internal|unexpected error|ERROR", re.IGNORECASE)


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a condition; fail when it does not come."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.01)


class Served:
    """One `serve` that has said where it listens."""

    def __init__(self, manage: Processes, folder: Path, *words: str, **env: str) -> None:
        name = f"serve-{time.monotonic_ns()}"
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = manage.start("serve", "--port", "0", *words, env=env, stdout=out, stderr=err)
        until(lambda: "Ctrl-C" in self.out.read_text() or self.process.poll() is not None, 90)
        found = ADDRESS.search(self.out.read_text())
        assert found, (self.out.read_text(), self.err.read_text())
        self.url = found[1]

    def said(self) -> str:
        """Everything on its stdout and stderr so far."""
        return self.out.read_text() + self.err.read_text()

    def trouble(self) -> list[str]:
        """The lines that no server may log."""
        return [line for line in self.said().splitlines() if TROUBLE.search(line)]

    def as_token(self, user: User) -> httpx2.Client:
        """A REST client with a fresh token of this user."""
        headers = {"Authorization": f"Bearer {create_token(user, 'test')}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60)

    def as_session(self, user: User) -> httpx2.Client:
        """A browser's client in which this user is signed in."""
        browser = Client()
        browser.force_login(user)
        cookie = browser.cookies[settings.SESSION_COOKIE_NAME].value
        return httpx2.Client(
            base_url=self.url, cookies={settings.SESSION_COOKIE_NAME: cookie}, headers={"Referer": self.url}, timeout=60
        )

    def as_nobody(self) -> httpx2.Client:
        """A browser's client in which nobody is signed in."""
        return httpx2.Client(base_url=self.url, headers={"Referer": self.url}, timeout=60)
