"""The real server of the HTTP tests, and a client of its sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from statestore.jsontext import loads
from tests.surfaces.api.conftest import callers, clerk, folder, server

__all__ = ["callers", "clerk", "folder", "server"]


class Socket:
    """An open socket: messages as they come."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def next(self, seconds: float = 30) -> Any:
        """The next message; AssertionError when the server closed instead."""
        try:
            return loads(str(self.connection.recv(timeout=seconds)))
        except ConnectionClosed as closed:
            raise AssertionError(f"closed with {closed.rcvd}") from closed

    def closed(self, seconds: float = 30) -> int:
        """The code with which the server closes, without another message."""
        with pytest.raises(ConnectionClosed) as closed:
            self.connection.recv(timeout=seconds)
        assert closed.value.rcvd is not None
        return closed.value.rcvd.code

    def quiet(self, seconds: float) -> bool:
        """Whether nothing comes for so long."""
        try:
            self.connection.recv(timeout=seconds)
        except TimeoutError:
            return True
        return False


def cookie_of(user: User) -> dict[str, str]:
    """The header with which this user's browser is signed in."""
    browser = Client()
    browser.force_login(user)
    return {"Cookie": f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"}


@contextmanager
def socket(site: str, *, headers: dict[str, str], origin: str | None = None, **options: Any) -> Iterator[Socket]:
    """A socket of this site, from a page with this origin."""
    address = f"{site.replace('http', 'ws', 1)}/ws/approvals"
    with connect(
        address, additional_headers=headers, origin=None if origin is None else Origin(origin), proxy=None, **options
    ) as connection:
        yield Socket(connection)


def refused(site: str, *, headers: dict[str, str], origin: str | None = None) -> int:
    """The status with which the handshake is refused."""
    try:
        with socket(site, headers=headers, origin=origin) as opened:
            raise AssertionError(f"it was let in and told {opened.next()}")
    except InvalidStatus as error:
        return error.response.status_code
