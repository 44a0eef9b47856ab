"""Where expressions stand in a spec, and what they may name there (format 16.2 to 16.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from workflows.spec import rules, spans
from workflows.spec.errors import Path, clipped, listed
from workflows.spec.expressions import examine
from workflows.spec.model import Json
from workflows.spec.patterns import IDENTIFIER
from workflows.spec.shapes import Faults


@dataclass(frozen=True, kw_only=True)
class Names:
    """What the root of an expression holds: `roots` without the steps, the steps, and the declared vars.

    With `anything` it is a value whose names nobody knows, and only what is read of `vars` is checked.
    """

    roots: tuple[str, ...]
    steps: Mapping[str, None]
    vars: Mapping[str, None]
    anything: bool = False

    _judged: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def problems(self, source: str) -> tuple[str, ...]:
        """What is wrong with an expression here, a sentence each. Judged once, however many aliases repeat it."""
        judged = self._judged.get(source)
        if judged is None:
            found = examine(source)
            problems = (problem.message for problem in found.problems)
            judged = self._judged[source] = (*problems, *self._not_provided(found.names))
        return judged

    def _not_provided(self, read: tuple[tuple[str, ...], ...]) -> Iterator[str]:
        """A sentence for each path that nothing provides."""
        doubtful = [path for path in read if path[0] not in self._open]
        for path in dict.fromkeys(path[:2] if path[0] == "vars" else path[:1] for path in doubtful):
            if path[0] != "vars":
                if self.anything:
                    continue
                yield f'nothing provides "{clipped(path[0])}"; there are {self._known}'
            elif len(path) > 1 and path[1] not in self.vars:
                declared = f"declared are {listed(self.vars)}" if self.vars else 'there is no "vars" block'
                yield f"nothing provides vars.{clipped(path[1])}; {declared}"

    @cached_property
    def _open(self) -> frozenset[str]:
        """The first names behind which anything may be read."""
        return frozenset((*self.roots, *self.steps)) - {"vars"}

    @cached_property
    def _known(self) -> str:
        known = f"{listed(self.roots)} and the steps {listed(self.steps)}"
        odd = next((step for step in self.steps if not IDENTIFIER.fullmatch(step)), None)
        return known if odd is None else f"{known}; a name like `{clipped(odd)}` must be written in a backtick pair"


@dataclass(frozen=True, kw_only=True)
class ExpressionRules:
    """The checks of a version: which names every expression sees, and which a step may not take."""

    roots: tuple[str, ...] = ("trigger", "input", "vars")
    reserved: frozenset[str] = frozenset({"trigger", "input", "vars"})

    def __call__(self, tree: dict[str, Json], faults: Faults) -> None:
        names = Names(
            roots=self.roots,
            steps=dict.fromkeys(step["step"] for _, step in rules.steps(tree)),
            vars=dict.fromkeys(tree.get("vars", {})),
        )
        for path, step in rules.steps(tree):
            if step["step"] in self.reserved:
                faults.soft((*path, "step"), f'"{step["step"]}" is reserved; a step may not be called that')
            if "if" in step:
                where = f'the condition of step "{clipped(step["step"])}": '
                check(step["if"], where, (*path, "if"), names, faults)
            check_texts(step, path, names, faults)
        for path, tool in rules.tools(tree):
            check_texts(tool, path, self.for_tool(tree, tool["name"], names), faults)
        self.more(tree, names, faults)

    def for_tool(self, tree: dict[str, Json], name: str, names: Names) -> Names:
        """What the templates of this tool see."""
        return names

    def more(self, tree: dict[str, Json], names: Names, faults: Faults) -> None:
        """Expressions that stand in other places."""


def check_texts(value: Json, path: Path, names: Names, faults: Faults) -> None:
    """All spans of all texts in a tree, in order, the `if` of a step before its other texts."""
    for at, text in texts(value, path):
        if "{{" not in text:
            continue
        for span in spans.spans(text):
            line = f" on line {span.line} of the text" if span.line > 1 else ""
            check(span.source, f"{{{{{clipped(span.source)}}}}}{line}: ", at, names, faults)


def check(source: str, where: str, path: Path, names: Names, faults: Faults) -> None:
    """One expression; `where` begins its messages."""
    for problem in names.problems(source):
        faults.soft(path, where + problem)


def texts(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    """Every text in a tree with its path, mapping keys not among them."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from texts(item, (*path, at))
