"""Which addresses a call may go to: the public ones, and the private ones that the operator lists (design 6).

An address that carries another in it is judged by both. Link-local addresses, and those at which clouds hand out a
machine's credentials, are never covered by `*` or by a wide network: only by their own name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

SETTING: Final = "KAMPONG_PRIVATE_ADDRESSES"


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


#: Where clouds hand out credentials, besides link-local addresses: AWS, Google, Scaleway, Alibaba, Azure, Oracle.
_METADATA: Final = _networks(
    "fd00:ec2::/32", "fd20:ce::254", "fd00:42::42", "100.100.100.200", "168.63.129.16", "192.0.0.192"
)
_LINK_LOCAL: Final = _networks("169.254.0.0/16", "fe80::/10")
_NARROW: Final = (*_METADATA, *_LINK_LOCAL)
#: IPv6 is public only where addresses are given out, less documentation and relays that the library does not know of.
_GIVEN_OUT: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC: Final = _networks("3fff::/20", "192.88.99.0/24")
#: The last 32 bits of these are an IPv4 address: compatible, mapped, translated, and NAT64.
_ENDS_IN_IPV4: Final = _networks("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)

_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", re.ASCII)
_NUMERIC = re.compile(r"[0-9.]+|0x[0-9a-f.x]+", re.ASCII)
_WITH_PORT = re.compile(r"(\[[^\]]*\]|[^:]*):([0-9]{1,5})", re.ASCII)


class AddressRefused(Exception):
    """The host may not be called. Says why and what the operator can do; `host` is the name it was asked for by."""

    def __init__(self, host: str, kind: str, note: str = "") -> None:
        super().__init__(f"{host} is {kind} and may not be called; an operator can list it in {SETTING}{note}")
        self.host = host


class _Entry(NamedTuple):
    host: str | None
    network: Network | None
    port: int | None


def read_entries(text: str) -> list[str]:
    """The entries of the setting, parted by commas only: IPv6 is full of colons. ValueError for one that is none."""
    entries = [part.strip() for part in text.split(",") if part.strip()]
    PrivateAddresses(entries)
    return entries


class PrivateAddresses:
    """The operator's list of private places that may be called: `*`, hosts, addresses, networks, `host:port`."""

    def __init__(self, entries: Iterable[str]) -> None:
        """ValueError names the entry that is none of these."""
        given = list(entries)
        self._any_private = "*" in given
        self._entries = [_read(entry) for entry in given if entry != "*"]

    def check(self, host: str, address: Address, port: int | None = None) -> None:
        """Raise AddressRefused unless this host may be called at this address and port."""
        named = [entry for entry in self._entries if entry.port in (None, port)]
        if any(entry.host == _plain(host) for entry in named):
            return
        networks = [entry.network for entry in named if entry.network is not None]
        whole = _within(address, networks)
        for seen in (address, *_carried(address)):
            if any(seen in narrow for narrow in _NARROW):
                if not _within(seen, [network for network in networks if _is_narrow(network)]):
                    note = "; `*` and wide networks do not cover it"
                    raise AddressRefused(host, "a link-local or metadata address", note)
            elif not (whole or _within(seen, networks) or self._may(seen, address)):
                raise AddressRefused(host, _kind(seen))

    def _may(self, seen: Address, address: Address) -> bool:
        if seen.is_multicast or seen.is_unspecified:
            return False
        # An envelope is judged by what it carries: the packets go there.
        return self._any_private or _is_public(seen) or (seen is address and _is_envelope(address))


def _read(entry: str) -> _Entry:
    written = entry.strip().lower()
    network = _network(written)
    if network is not None:
        return _Entry(None, network, None)
    place, port = written, None
    if found := _WITH_PORT.fullmatch(written):
        place, port = found[1], int(found[2])
        network = _network(place)
    host = _plain(place)
    is_place = network is not None or (_HOST.fullmatch(host) and not _NUMERIC.fullmatch(host))
    if not is_place or (port is not None and not 0 < port < 65536):
        raise ValueError(f"{entry!r} is not a host name, an address or a network, with or without a port")
    return _Entry(None if network is not None else host, network, port)


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text.removeprefix("[").removesuffix("]"), strict=False)
    except ValueError:
        return None


def _plain(host: str) -> str:
    """A host name as it is compared: without case and final dot, in the spelling of the wire."""
    name = host.lower().rstrip(".")
    try:
        return name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return name


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def _is_narrow(network: Network) -> bool:
    """Whether who wrote this network meant special addresses: it is one address, or lies inside their range."""
    return network.num_addresses == 1 or any(
        network.version == narrow.version
        and network.prefixlen >= narrow.prefixlen
        and network.network_address in narrow
        for narrow in _NARROW
    )


def _is_public(address: Address) -> bool:
    if _within(address, _NOT_PUBLIC) or not address.is_global:
        return False
    return isinstance(address, ipaddress.IPv4Address) or address in _GIVEN_OUT


def _is_envelope(address: Address) -> bool:
    """Whether an address is only another way to write or to reach the IPv4 address that it ends in."""
    mapped, translated, nat64 = _ENDS_IN_IPV4[1:]
    return any(address in network for network in (mapped, translated, nat64))


def _carried(address: Address) -> Iterator[Address]:
    """The IPv4 addresses inside an IPv6 one, in every way that puts one there."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    number = int(address)
    if _within(address, _ENDS_IN_IPV4) and number > 1:
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if address in _LOCAL_NAT64:
        yield from _translated(number)
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo


def _translated(number: int) -> Iterator[Address]:
    """The IPv4 address behind a local NAT64, whose prefix may have any of four lengths; bits 64 to 71 are skipped."""
    without = (number >> 64 << 56) | (number & (1 << 56) - 1)
    for length in (48, 56, 64):
        yield ipaddress.IPv4Address((without >> (120 - length - 32)) & 0xFFFFFFFF)
    yield ipaddress.IPv4Address(number & 0xFFFFFFFF)


def _kind(address: Address) -> str:
    if address.is_loopback:
        return "a loopback address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified:
        return "the unspecified address"
    return "a private address"
