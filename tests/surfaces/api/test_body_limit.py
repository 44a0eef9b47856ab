"""The limit on bodies holds while they arrive, on a real server, with and without a declared length."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.surfaces.api.conftest import Callers
from workflows.models import Run
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1024 * 1024
PLAIN = {"Content-Type": "text/plain"}


def pieces(size: int) -> Iterator[bytes]:
    """A body without a declared length."""
    while size > 0:
        yield b"x" * min(size, 65536)
        size -= 65536


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("path", ["/webhook/clerk", "/runs", "/approvals/17/approve"])
def test_30_mb_are_refused_and_the_client_can_read_why(
    declared: bool, path: str, server: str, callers: Callers, clerk: SpecFile
) -> None:
    body = b"x" * (30 * MIB) if declared else pieces(30 * MIB)
    response = httpx2.post(server + path, content=body, headers=callers.requester.headers | PLAIN, timeout=60)
    assert (response.status_code, response.json()["code"], response.json()["limit"]) == (413, "too_large", MIB)
    assert not Run.objects.exists()


def test_who_asks_comes_first_even_then(server: str, clerk: SpecFile) -> None:
    response = httpx2.post(f"{server}/webhook/clerk", content=pieces(2 * MIB), headers=PLAIN)
    assert response.status_code == 401


@pytest.mark.parametrize(("size", "status"), [(MIB, 201), (MIB + 1, 413)])
def test_the_limit_is_exact_without_a_declared_length(
    size: int, status: int, server: str, callers: Callers, clerk: SpecFile
) -> None:
    response = httpx2.post(
        f"{server}/webhook/clerk", content=pieces(size), headers=callers.requester.headers | PLAIN, timeout=60
    )
    assert response.status_code == status


def test_a_form_of_the_admin_over_the_limit_acts_on_nothing(server: str) -> None:
    response = httpx2.post(
        f"{server}/admin/login/",
        content=b"username=x&password=" + b"x" * 2 * MIB,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert response.status_code == 403


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: -2\r\n",
        "Content-Length: two\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
    ],
)
def test_a_length_that_means_two_things_starts_nothing(
    head: str, server: str, callers: Callers, clerk: SpecFile
) -> None:
    host = urlsplit(server)
    with socket.create_connection((str(host.hostname), host.port or 80), timeout=60) as connection:
        connection.sendall(
            (
                "POST /webhook/clerk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {callers.requester.token}\r\nConnection: close\r\n{head}\r\n{{}}"
            ).encode()
        )
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536).decode("latin-1")
    assert answer == "" or answer.split(" ")[1] == "400", answer
    assert not Run.objects.exists()


def test_a_client_that_asks_first_is_not_told_to_send_too_much(server: str, callers: Callers, clerk: SpecFile) -> None:
    host = urlsplit(server)
    with socket.create_connection((str(host.hostname), host.port or 80), timeout=60) as connection:
        connection.sendall(
            (
                "POST /webhook/clerk HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
                f"Authorization: Bearer {callers.requester.token}\r\nExpect: 100-continue\r\n"
                f"Content-Length: {30 * MIB}\r\nConnection: close\r\n\r\n"
            ).encode()
        )
        answer = connection.recv(65536).decode("latin-1")
    assert answer.split(" ")[1] == "413"
