"""Which addresses may be called; the hostile spellings come from lists of known ways round such guards."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import httpcore2
import pytest

from tests.fakes_tools import FakeTools
from workflows.adapters import guard, wire
from workflows.adapters.addresses import AddressRefused
from workflows.adapters.wire import MIB, Wire

HOSTILE = [
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://0.0.0.0:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f.1:{port}/",
    "http://127.1:{port}/",
    "http://user@127.0.0.1:{port}/",
    "http://public.example@127.0.0.1:{port}/",
    "http://10.0.0.1:{port}/",
    "http://100.64.0.1:{port}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://017700000001:{port}/",
    "http://127。0。0。1:{port}/",
    "http://[::]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://public.example:80@127.0.0.1:{port}/",
    "HTTP://127.0.0.1:{port}#@public.example/",
]
UNSENDABLE = [
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://ⓛocalhost:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://127.0.0.1:{port}:80/",
    "http://127.0.0.1:{port}/\r\nX: y",
    " http://127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
]


@pytest.mark.parametrize("form", HOSTILE)
def test_no_spelling_of_a_private_address_gets_through(form: str) -> None:
    with FakeTools({"GET /": {"text": "inside"}}) as tools:
        port = tools.url.rpartition(":")[2]
        with pytest.raises(AddressRefused):
            get(Wire([]), form.format(port=port))
        assert tools.requests == []


@pytest.mark.parametrize("form", UNSENDABLE)
def test_what_another_program_might_take_for_an_address_is_none(form: str) -> None:
    with pytest.raises(wire.Unsendable):
        get(Wire(["*"]), form.format(port=80))


def test_a_port_that_is_listed_admits_no_other() -> None:
    with FakeTools({"GET /": {"text": "inside"}}) as tools, FakeTools() as other:
        host = tools.url.removeprefix("http://")
        assert get(Wire([host]), tools.url + "/").body == b"inside"
        with pytest.raises(AddressRefused):
            get(Wire([host]), other.url + "/")
        assert other.requests == []


def test_it_connects_to_the_address_that_was_checked_and_asks_for_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that answers another address the second time is asked one time only."""
    answers = iter(["127.0.0.1", "127.0.0.2"])
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *rest: Any, **named: Any) -> list[Any]:
        return real(next(answers) if host == "rebinding.example" else host, port, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with FakeTools({"GET /": {"text": "first"}}) as tools:
        port = tools.url.rpartition(":")[2]
        assert get(Wire(["127.0.0.1"]), f"http://rebinding.example:{port}/").body == b"first"
    assert next(answers) == "127.0.0.2"


def test_a_name_is_checked_at_the_address_it_connects_to(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    monkeypatch.setattr(guard, "resolve", lambda host, port, timeout: next(answers))
    assert guard.resolve("rebinding.example", 80, 1) == ["93.184.216.34"]
    with pytest.raises(AddressRefused):
        get(Wire([]), "http://rebinding.example/")


def test_one_private_address_among_many_refuses_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "resolve", lambda host, port, timeout: ["93.184.216.34", "10.0.0.1"])
    with pytest.raises(AddressRefused):
        get(Wire([]), "http://mixed.example/")


def test_a_slow_resolver_meets_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_named: over.wait(60) and [])
    started = time.monotonic()
    with pytest.raises(httpcore2.ConnectTimeout):
        guard.resolve("slow.example", 80, 0.2)
    assert time.monotonic() - started < 15
    over.set()


def test_a_name_that_does_not_exist_is_no_answer() -> None:
    with pytest.raises(wire.NoAnswer, match="resolved") as caught:
        get(Wire(["*"]), "http://nowhere.invalid/")
    assert caught.value.before


def get(policy: Wire, url: str, cap: int = MIB) -> wire.Answer:
    until = time.monotonic() + 30
    return policy.exchange("GET", wire.address(url), headers=[], body=None, until=until, cap=cap)


def test_refusals_and_failures_use_up_no_connection() -> None:
    """A process may have a hundred at a time; those that failed must not count."""
    with FakeTools({"GET /": {"text": "x" * 2000}}) as tools:
        wire_here = Wire([tools.url.removeprefix("http://")])
        for _ in range(105):
            with pytest.raises(AddressRefused):
                get(wire_here, "http://127.0.0.1:9/")
            with pytest.raises(wire.TooLong):
                get(wire_here, tools.url + "/", cap=1000)
        assert get(wire_here, tools.url + "/").status == 200
