"""People with tokens, a served folder of specs, and a real server on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.test.utils import override_settings

from approvals.tokens import create_token
from kampong.asgi import application
from statestore.jsontext import dumps
from tests.conftest import People
from tests.workbench import ASKING, write_spec
from workflows.draining import draining
from workflows.registry import SpecFile


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Calls the interface with one token, or none."""

    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def get(self, path: str, **options: Any) -> Any:
        return Client().get(path, headers=self.headers | options.pop("headers", {}), **options)

    def post(self, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Any:
        """`body` goes out as JSON."""
        return self.send(path, dumps(body).encode(), headers=headers)

    def send(
        self,
        path: str,
        raw: bytes,
        content_type: str = "application/json",
        *,
        method: str = "POST",
        headers: dict[str, str] | None = None,
    ) -> Any:
        """Exactly these bytes, with their type even when there are none."""
        return Client(raise_request_exception=False).generic(
            method,
            path,
            raw,
            content_type=content_type,
            headers=self.headers | (headers or {}),
            CONTENT_TYPE=content_type,
        )


@dataclass(frozen=True, kw_only=True)
class Callers:
    approver: Caller
    requester: Caller
    stranger: Caller
    operator: Caller
    nobody: Caller


def with_token(user: User) -> Caller:
    """This user's calls, by a fresh token."""
    return Caller(token=create_token(user, "test"))


@pytest.fixture
def callers(people: People) -> Callers:
    """The people of the suite, each with a token of their own, and somebody without one."""
    return Callers(
        approver=with_token(people.approver),
        requester=with_token(people.requester),
        stranger=with_token(people.stranger),
        operator=with_token(people.operator),
        nobody=Caller(),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder whose specs are served."""
    with override_settings(KAMPONG_SPECS=[str(tmp_path)]):
        yield tmp_path


@pytest.fixture
def clerk(folder: Path) -> SpecFile:
    """A served spec that asks twice."""
    return write_spec(folder, ASKING)


Address = str


@pytest.fixture
def server(transactional_db: None) -> Iterator[Address]:
    """The address of a real server in this process, on this test's database."""
    running = uvicorn.Server(
        uvicorn.Config(application, host="127.0.0.1", port=0, lifespan="off", log_config=None, access_log=False)
    )
    thread = threading.Thread(target=running.run)
    thread.start()
    until(lambda: running.started)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    draining.set()  # ends the streams that a test left open
    running.should_exit = True
    thread.join(60)
    draining.clear()
    connections.close_all()
    assert not thread.is_alive()


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait for the condition; its value."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.02)):
        found = true()
        if found:
            return found
        pause.wait(0.02)
    raise AssertionError(f"not within {seconds} s")
