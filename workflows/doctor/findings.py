"""What is examined, and what is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from workflows.adapters.fixtures import Mode
from workflows.spec.errors import Note
from workflows.spec.model import Spec, Tool

#: `fail` would stop a run, or the step that comes to it; `warn` is worth a look.
Status: TypeAlias = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    status: Status
    area: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Patient:
    """A spec and the surroundings of its runs. `fixtures` is the folder of recorded calls."""

    spec: Spec
    fixtures: Path
    notes: tuple[Note, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    mode: Mode = "live"

    def has(self, name: str) -> bool:
        """Whether the variable has a value. An empty one has none."""
        return bool(self.environ.get(name))

    @cached_property
    def by_name(self) -> Mapping[str, Tool]:
        """The tools that can be called, by name: of several with one name the first."""
        found: dict[str, Tool] = {}
        for tool in self.spec.agent.tools:
            found.setdefault(tool.name, tool)
        return found

    def tools(self) -> Iterator[Tool]:
        """These tools, in the order of the file."""
        yield from self.by_name.values()


def passed(area: str, message: str) -> Check:
    return Check(status="pass", area=area, message=message)


def warned(area: str, message: str) -> Check:
    return Check(status="warn", area=area, message=message)


def failed(area: str, message: str) -> Check:
    return Check(status="fail", area=area, message=message)
