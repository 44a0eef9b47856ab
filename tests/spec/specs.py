"""Small specs for tests."""

from __future__ import annotations

from workflows.spec.errors import SpecError
from workflows.spec.load import Loaded, load

HEAD = """\
version: "{version}"
agent:
  id: ticket-desk
  name: Ticket desk
  role: Clerk
  goal: Sort tickets
"""


def spec(rest: str, version: str = "1.1") -> str:
    """A spec whose agent goes on with `rest`; it gets a plain workflow when `rest` has none."""
    workflow = "" if "workflow:" in rest else "  workflow:\n    - {step: read, action: summarise}\n"
    return HEAD.format(version=version) + rest + workflow


def errors(text: str | bytes) -> list[SpecError]:
    loaded = load(text)
    assert loaded.spec is None
    assert loaded.errors
    return list(loaded.errors)


def only_error(text: str | bytes) -> SpecError:
    found = errors(text)
    assert len(found) == 1, [str(error) for error in found]
    return found[0]


def accepted(text: str | bytes) -> Loaded:
    loaded = load(text)
    assert loaded.errors == ()
    assert loaded.spec is not None
    return loaded
