"""Where a tool's url leads, as far as that is known before a run."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from statestore import conf
from workflows.adapters import wire
from workflows.adapters.addresses import AddressRefused, PrivateAddresses
from workflows.doctor.findings import Patient
from workflows.engine.references import Ref, Text, author, author10
from workflows.spec import spans
from workflows.spec.model import HttpTool

#: Stands for what only a run knows. A valid host, port, path and query alike.
_ANY: Final = "1"
_AUTHORITY: Final = re.compile(r"https?://[^/?#]+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a url. `text` is None where only a run knows it; `name` is the variable that it comes from."""

    text: str | None
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class Place:
    """A host that a call goes to. `shown` never holds what a variable holds."""

    scheme: str
    host: str
    port: int
    shown: str


def problem(patient: Patient, tool: HttpTool) -> str | None:
    """Why this tool's url can be none, whatever a run fills in; None when it can, or cannot be judged."""
    pieces = _pieces(patient, tool)
    if not pieces or pieces[0].text is None:
        return None
    try:
        wire.address("".join(_ANY if piece.text is None else piece.text for piece in pieces))
    except wire.Unsendable as fault:
        return str(fault)
    return None


def refusal(patient: Patient, tool: HttpTool) -> str | None:
    """Why the address that this url spells may not be called; None for one that may, and for a name."""
    found = place(patient, tool)
    try:
        address = ipaddress.ip_address(found.host.strip("[]")) if found is not None else None
    except ValueError:
        return None
    if found is None or address is None:
        return None
    try:
        PrivateAddresses(conf.value("KAMPONG_PRIVATE_ADDRESSES")).check(found.host, address, found.port)
    except AddressRefused as problem:
        return str(problem).replace(found.host, found.shown)
    return None


def place(patient: Patient, tool: HttpTool) -> Place | None:
    """The host that every call of this tool goes to; None when only a run knows it."""
    known, names = "", []
    for piece in _pieces(patient, tool):
        ended = _ends_in(known)
        if ended:
            break
        if piece.text is None:
            return None
        if piece.name is not None:
            names.append(piece.name)
        known += piece.text
    try:
        url = wire.address(known)
    except wire.Unsendable:
        return None
    port = url.port or (443 if url.scheme == "https" else 80)
    shown = f"{url.host}:{port}" if not names else f"the host that {', '.join(dict.fromkeys(names))} gives"
    return Place(scheme=url.scheme, host=url.host, port=port, shown=shown)


def _ends_in(known: str) -> bool:
    """Whether host and port are over: what follows cannot change them."""
    found = _AUTHORITY.match(known)
    return found is not None and found.end() < len(known)


def _pieces(patient: Patient, tool: HttpTool) -> list[Piece]:
    if patient.spec.is_1_0:
        # Every placeholder that a step could fill stands for itself.
        return list(_of(patient, author10(tool.url, _Filled(), _FILLING)))
    pieces: list[Piece] = []
    for part in spans.parse(tool.url):
        pieces += [Piece(text=None)] if isinstance(part, spans.Span) else _of(patient, author(part))
    return pieces


_FILLING: Final = "\0"


def _of(patient: Patient, text: Text) -> Iterator[Piece]:
    for part in text.parts:
        if isinstance(part, Ref):
            yield Piece(text=patient.environ.get(part.name) or None, name=part.name)
            continue
        for at, plain in enumerate(part.split(_FILLING)):
            if at:
                yield Piece(text=None)
            if plain:
                yield Piece(text=plain)


class _Filled(dict[str, Any]):
    """Outputs in which every step has one."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return _FILLING
