"""The site's own address: links that can be made where no request is at hand, by a worker or a sweep."""

from __future__ import annotations

from django.urls import get_script_prefix, reverse

from approvals.baseurl import read_base_url
from statestore.conf import value

#: Where `serve` listens, as long as the setting says nothing.
_listening: list[str] = []


class NoAddress(Exception):
    """No link can be made: nobody has said where this site is reached. Set KAMPONG_BASE_URL."""


def listening_at(address: str) -> None:
    """Links lead here as long as KAMPONG_BASE_URL is not set; in production it has to be."""
    _listening[:] = [address]


def base_url() -> str:
    """Where people reach this site, without a slash at its end. NoAddress where nobody has said so."""
    try:
        given = read_base_url(value("KAMPONG_BASE_URL"))
    except ValueError as problem:
        raise NoAddress(f"KAMPONG_BASE_URL cannot be used: {problem}") from problem
    if given:
        return given
    if _listening and not value("KAMPONG_PRODUCTION"):
        return _listening[0]
    raise NoAddress("KAMPONG_BASE_URL is not set, so no link can lead back to this site")


def link_to(route_name: str, *args: object) -> str:
    """The absolute address of one of our pages: host, scheme and path prefix as KAMPONG_BASE_URL has them."""
    base = base_url()
    path = reverse(route_name, args=args)
    # A request at hand may have brought the prefix already.
    return f"{base}/{path.removeprefix(get_script_prefix()).lstrip('/')}"
