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
    """What the root of an expression holds: `roots` without the steps, the steps, and the declared vars."""

    roots: tuple[str, ...]
    steps: Mapping[str, None]
    vars: Mapping[str, None]

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
                for problem in names.problems(step["if"]):
                    where = f'the condition of step "{clipped(step["step"])}": '
                    faults.soft((*path, "if"), where + problem)
            _check_texts(step, path, names, faults)
        for path, tool in rules.tools(tree):
            _check_texts(tool, path, names, faults)


def _check_texts(value: Json, path: Path, names: Names, faults: Faults) -> None:
    """All spans of all texts in a tree, in order, the `if` of a step before its other texts."""
    for at, text in texts(value, path):
        if "{{" not in text:
            continue
        for span in spans.spans(text):
            for problem in names.problems(span.source):
                line = f" on line {span.line} of the text" if span.line > 1 else ""
                faults.soft(at, f"{{{{{clipped(span.source)}}}}}{line}: {problem}")


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
