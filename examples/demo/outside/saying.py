"""What a call asks for, and what a service says to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit


class Refused(ValueError):
    """The call is not what its route takes; the text says what is."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call: `parts` are those of the path behind `/service`, `query` has the first value of each name."""

    method: str
    parts: tuple[str, ...]
    query: dict[str, str]
    body: Any

    @classmethod
    def of(cls, method: str, target: str, body: Any) -> Call:
        """As it came over the wire."""
        url = urlsplit(target)
        parts = tuple(unquote(part) for part in url.path.strip("/").split("/"))
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        return cls(method=method, parts=parts[1:] if parts[0] == "service" else (), query=query, body=body)

    def matches(self, method: str, *parts: str | None) -> bool:
        """Whether it is this method on this path; None stands for any part."""
        return (
            self.method == method
            and len(self.parts) == len(parts)
            and all(wanted in (None, part) for wanted, part in zip(parts, self.parts, strict=True))
        )

    def field(self, name: str) -> Any:
        """A field of the body, which has to be there."""
        if not isinstance(self.body, dict) or name not in self.body:
            raise Refused(f'the body has to be an object with "{name}"')
        return self.body[name]


@dataclass(frozen=True, kw_only=True)
class Said:
    """An answer, the route under which the call is counted, and whether it changed what the service knows."""

    route: str
    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    changed: bool = False


class Outside(Protocol):
    """One service. The same calls in the same order leave it in the same state."""

    #: Each route that it counts.
    routes: tuple[str, ...]

    def answer(self, call: Call) -> Said | None:
        """What it says; None to a call that is not for it."""

    def told(self) -> Any:
        """What it did, counted for each thing that it did it for."""
