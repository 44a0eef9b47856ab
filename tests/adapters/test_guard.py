"""Which addresses may be called; the hostile spellings come from lists of known ways round such guards."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time

import httpcore2
import pytest

from tests.fakes_tools import FakeTools
from workflows.adapters import guard, wire
from workflows.adapters.guard import AddressRefused, PrivateAddresses
from workflows.adapters.wire import MIB, Wire

PRIVATE = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "::1", "fd12::1", "::ffff:127.0.0.1"]
NEVER_BY_STAR = [
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "fe80::1",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "0.0.0.0",
    "::",
    "224.0.0.1",
]
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
]


def check(entries: list[str], host: str, address: str) -> None:
    PrivateAddresses(entries).check(host, ipaddress.ip_address(address))


@pytest.mark.parametrize("address", [*PRIVATE, *NEVER_BY_STAR])
def test_with_an_empty_list_only_public_addresses_may_be_called(address: str) -> None:
    check([], "public.example", "93.184.216.34")
    with pytest.raises(AddressRefused, match="KAMPONG_PRIVATE_ADDRESSES"):
        check([], "inside.example", address)


@pytest.mark.parametrize("address", PRIVATE)
def test_the_star_admits_private_addresses(address: str) -> None:
    check(["*"], "inside.example", address)


@pytest.mark.parametrize("address", NEVER_BY_STAR)
def test_the_star_never_admits_link_local_and_metadata(address: str) -> None:
    with pytest.raises(AddressRefused, match=r"inside\.example"):
        check(["*"], "inside.example", address)


@pytest.mark.parametrize("entry", ["inside.example", "INSIDE.example.", "10.1.2.3", "10.0.0.0/8"])
def test_a_named_host_address_or_network_may_be_called(entry: str) -> None:
    check([entry], "inside.example", "10.1.2.3")
    check([entry], "inside.example", "::ffff:10.1.2.3")
    with pytest.raises(AddressRefused):
        check([entry], "other.example", "192.168.0.1")


def test_metadata_may_be_called_when_it_is_named() -> None:
    check(["169.254.169.254"], "169.254.169.254", "169.254.169.254")
    check(["fd00:ec2::254"], "metadata.example", "fd00:ec2::254")


@pytest.mark.parametrize("form", HOSTILE)
def test_no_spelling_of_a_private_address_gets_through(form: str) -> None:
    with FakeTools({"GET /": {"text": "inside"}}) as tools:
        port = tools.url.rpartition(":")[2]
        with pytest.raises(AddressRefused):
            get(Wire([]), form.format(port=port))
        assert tools.requests == []


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
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_named: over.wait(10) and [])
    started = time.monotonic()
    with pytest.raises(httpcore2.ConnectTimeout):
        guard.resolve("slow.example", 80, 0.2)
    assert time.monotonic() - started < 2
    over.set()


def test_a_name_that_does_not_exist_is_no_answer() -> None:
    with pytest.raises(wire.NoAnswer, match="resolved") as caught:
        get(Wire(["*"]), "http://nowhere.invalid/")
    assert caught.value.before


def get(policy: Wire, url: str) -> wire.Answer:
    until = time.monotonic() + 5
    return policy.exchange("GET", wire.address(url), headers=[], body=None, until=until, cap=MIB)
