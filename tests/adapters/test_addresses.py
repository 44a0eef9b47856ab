"""Which addresses may be called, in every form that carries one (design 6, dependencies 2.6)."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

import workflows.conf  # noqa: F401  (declares the setting)
from statestore.conf import from_environment
from workflows.adapters.addresses import AddressRefused, PrivateAddresses

PUBLIC = ["93.184.216.34", "2606:2800::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "198.18.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "240.0.0.1",
    "255.255.255.255",
    "0.1.2.3",
    "::1",
    "fd12::1",
    "fec0::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "::ffff:0:10.0.0.1",
    "64:ff9b::a00:1",
    "2002:a00:1::1",
    "2001:4860::5efe:a00:1",
]
NEVER_BY_STAR = [
    "169.254.169.254",
    "169.254.170.2",
    "::ffff:169.254.169.254",
    "::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "2002:a9fe:a9fe::",
    "2001:4860::5efe:a9fe:a9fe",
    "2001:0:4136:e378:8000:63bf:5601:5601",
    "fe80::1",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
]


def check(entries: list[str], host: str, address: str, port: int = 80) -> None:
    PrivateAddresses(entries).check(host, ipaddress.ip_address(address), port)


def refused(entries: list[str], host: str, address: str, port: int = 80) -> str:
    with pytest.raises(AddressRefused) as caught:
        check(entries, host, address, port)
    return str(caught.value)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_need_no_entry(address: str) -> None:
    check([], "public.example", address)


@pytest.mark.parametrize("address", [*PRIVATE, *NEVER_BY_STAR])
def test_with_an_empty_list_only_public_addresses_may_be_called(address: str) -> None:
    message = refused([], "inside.example", address)
    assert "inside.example" in message
    assert "KAMPONG_PRIVATE_ADDRESSES" in message


@pytest.mark.parametrize("address", PRIVATE)
def test_the_star_admits_private_addresses(address: str) -> None:
    check(["*"], "inside.example", address)


@pytest.mark.parametrize("address", NEVER_BY_STAR)
def test_the_star_never_admits_link_local_and_metadata(address: str) -> None:
    assert "inside.example" in refused(["*"], "inside.example", address)


@pytest.mark.parametrize("address", NEVER_BY_STAR[:17])
def test_neither_does_a_wide_network_that_was_written_for_something_else(address: str) -> None:
    everything = ["0.0.0.0/0", "::/0", "fd00::/8", "100.64.0.0/10", "192.0.0.0/24", "64:ff9b::/96"]
    assert "do not cover it" in refused(everything, "inside.example", address)


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("169.254.169.254", "169.254.169.254"),
        ("169.254.169.254", "::ffff:169.254.169.254"),
        ("169.254.0.0/16", "169.254.170.2"),
        ("fe80::/10", "fe80::1"),
        ("fd00:ec2::254", "fd00:ec2::254"),
        ("[fd00:ec2::254]:80", "fd00:ec2::254"),
        ("100.100.100.200/32", "100.100.100.200"),
        ("metadata.example", "169.254.169.254"),
    ],
)
def test_metadata_may_be_called_when_it_is_named(entry: str, address: str) -> None:
    check([entry], "metadata.example", address)


@pytest.mark.parametrize("entry", ["inside.example", "INSIDE.example.", "10.1.2.3", "10.0.0.0/8", "10.9.9.9/8"])
def test_a_named_host_address_or_network_may_be_called(entry: str) -> None:
    check([entry], "inside.example", "10.1.2.3")
    check([entry], "Inside.example.", "::ffff:10.1.2.3", port=8443)
    refused([entry], "other.example", "192.168.0.1")


@pytest.mark.parametrize("entry", ["inside.example:8080", "10.1.2.3:8080", "10.0.0.0/8:8080", "[::1]:8080"])
def test_an_entry_with_a_port_admits_that_port_only(entry: str) -> None:
    address = "::1" if "[" in entry else "10.1.2.3"
    check([entry], "inside.example", address, port=8080)
    refused([entry], "inside.example", address, port=8081)


def test_a_name_with_letters_of_any_script_is_compared_as_it_travels() -> None:
    check(["bücher.example"], "xn--bcher-kva.example", "10.0.0.1")


@pytest.mark.parametrize(
    "entry",
    [
        "http://localhost",
        "localhost/path",
        "10.0.0.0/33",
        "10.0.0.256",
        "2130706433",
        "0x7f.1",
        "inside.example:0",
        "inside.example:99999",
        "inside.example:http",
        "*.example",
        "two words",
        "-x.example",
    ],
)
def test_an_entry_that_could_never_match_is_refused_by_name(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        PrivateAddresses([entry])
    with pytest.raises(ImproperlyConfigured) as caught:
        from_environment({"KAMPONG_PRIVATE_ADDRESSES": f"localhost, {entry}"})
    assert entry in str(caught.value)


@pytest.mark.parametrize(
    ("text", "entries"),
    [("", []), (" , ", []), ("*", ["*"]), ("::1, [fd12::1]:80 ,box:81,", ["::1", "[fd12::1]:80", "box:81"])],
)
def test_the_environments_text_is_parted_by_commas(text: str, entries: list[str]) -> None:
    read: Any = from_environment({"KAMPONG_PRIVATE_ADDRESSES": text})
    assert read == {"KAMPONG_PRIVATE_ADDRESSES": entries}
