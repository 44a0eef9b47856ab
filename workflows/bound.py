"""What this thread, or this request, is busy with: the ids that each line of its log carries (docs/operations.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from statestore import keys

#: Every id that can be bound, in the order in which a line names them. No others: a log holds no payload.
FIELDS = ("request", "run", "agent", "workspace", "step", "key")

_NOTHING: Mapping[str, str] = {}
_ids: ContextVar[Mapping[str, str]] = ContextVar("kampong_bound_ids", default=_NOTHING)


def ids() -> Mapping[str, str]:
    """What is bound here now, by name."""
    return _ids.get()


@contextmanager
def bound(**named: object) -> Iterator[None]:
    """Bind these ids inside the block, besides those of the blocks around it. A key is bound as its fingerprint."""
    token = _ids.set(_with(named))
    try:
        yield
    finally:
        _ids.reset(token)


def rebind(**named: object) -> None:
    """Change ids until the block around ends: a run went on to its next step."""
    _ids.set(_with(named))


def _with(named: Mapping[str, object]) -> Mapping[str, str]:
    unknown = set(named).difference(FIELDS)
    if unknown:
        raise TypeError(f"no line of the log has the id {', '.join(sorted(unknown))}; known: {', '.join(FIELDS)}")
    added = {name: str(value) for name, value in named.items() if value}
    if "key" in added:
        added["key"] = keys.shown(f"{keys.APPROVAL}{added['key']}")
    return {**_ids.get(), **added}
