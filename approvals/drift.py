"""How the spec of a request changed since its run started: at the pause, and in the file as it is now."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, Literal, TypeAlias

import yaml

from approvals.binding import bound, present
from approvals.models import ApprovalRequest
from approvals.records import Record
from workflows.errors import NotPossible
from workflows.models import SpecVersion
from workflows.registry import SpecFile
from workflows.spec.hashing import canonical
from workflows.spec.reader import read

State: TypeAlias = Literal["same", "changed", "added", "removed", "moved"]
Place: TypeAlias = Literal["before", "on", "after", "several", "elsewhere"]
_Tree: TypeAlias = dict[str, Any]
_EXECUTES = re.compile(r"execute_tool\(([A-Za-z0-9_]+)\)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class StepChange:
    """One step (or another part: a tool, a key of the agent) at the pause and now, as text in the order as written."""

    name: str
    state: State
    before: str = ""
    now: str = ""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """`place` says where the differences lie, seen from the step that waits.

    `present` is False where the file is missing or invalid now; `why_not` says why nobody can rebind the request.
    """

    present: bool
    recorded: str
    now: str | None
    steps: list[StepChange] = field(default_factory=list)
    others: list[StepChange] = field(default_factory=list)
    place: Place = "elsewhere"
    can_rebind: bool = False
    why_not: str = ""


def drift_of(request: ApprovalRequest, record: Record) -> Drift | None:
    """The difference; None when the file says what it said when the run started. Reads only, outside a transaction."""
    file = present(request)
    recorded = str(record["spec_hash"])
    if isinstance(file, SpecFile) and file.hash == recorded:
        return None
    why_not = ""
    try:
        bound(request, record)
    except NotPossible as problem:
        why_not = problem.message
    if not isinstance(file, SpecFile):
        return Drift(present=False, recorded=recorded, now=None, why_not=why_not)
    both = _both(request, recorded, file)
    return Drift(
        present=True,
        recorded=recorded,
        now=file.hash,
        steps=both.steps(request.step),
        others=both.others(),
        place=both.place(request.step, request.step_index),
        can_rebind=not why_not,
        why_not=why_not,
    )


def place_of(request: ApprovalRequest, record: Record, file: SpecFile) -> Place:
    """Where the differences lie, seen from the step that waits."""
    return _both(request, str(record["spec_hash"]), file).place(request.step, request.step_index)


def _both(request: ApprovalRequest, recorded: str, file: SpecFile) -> _Both:
    pinned = SpecVersion.objects.get(workspace=request.workspace, hash=recorded)
    return _Both(before=_tree(pinned.text), now=_tree(file.text))


def _tree(text: str) -> _Tree:
    """What the author wrote: before defaults, with every key."""
    document = read(text)
    return document.tree if document is not None and isinstance(document.tree, dict) else {}


@dataclass(frozen=True, kw_only=True)
class _Both:
    """The spec as it was and as it is."""

    before: _Tree
    now: _Tree

    def steps(self, step: str) -> list[StepChange]:
        """Every step of the two, in the order of now, those that are gone where they were.

        It is the others that moved, never the step that waits.
        """
        before, now = _workflow(self.before), _workflow(self.now)
        found: list[StepChange] = []
        for old, new in _around((step, 0), list(before), list(now)):
            for what, i, j, m, n in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
                found += [_change(key[0], before[key], None) for key in old[i:j] if key not in now]
                for key in new[m:n]:
                    one = _change(key[0], before.get(key), now[key])
                    found.append(replace(one, state="moved") if what != "equal" and one.state == "same" else one)
        return found

    def others(self) -> list[StepChange]:
        """Everything else that differs: tools, keys of the agent, vars."""
        before, now = dict(_parts(self.before)), dict(_parts(self.now))
        names = dict.fromkeys([*now, *before])
        changes = (_change(name, before.get(name), now.get(name)) for name in names)
        return [change for change in changes if change.state != "same"]

    def place(self, step: str, index: int) -> Place:
        """Where the differences lie, seen from this step, which was at this position."""
        sides = set(self._sides(step, index)) - {"elsewhere"}
        if len(sides) > 1:
            return "several"
        return sides.pop() if sides else "elsewhere"

    def _sides(self, step: str, index: int) -> Iterator[Place]:
        sides: dict[str, set[Place]] = {}
        for tree, at in ((self.before, index), (self.now, _at(self.now, step))):
            for number, (name, _) in enumerate(_workflow(tree)):
                side: Place = "on" if name == step else "before" if number < at else "after"
                sides.setdefault(name, set()).add(side)
        for change in self.steps(step):
            if change.state != "same":
                yield from sides[change.name]
        for change in self.others():
            tool = change.name.removeprefix("tool ")
            if tool != change.name:
                for name in {*_users(self.before, tool), *_users(self.now, tool)}:
                    yield from sides[name]
            elif change.name in ("agent.approvals", "agent.guardrails"):
                yield "on"


def _workflow(tree: _Tree) -> dict[tuple[str, int], Any]:
    """The steps by name and, where several have one, by which of them it is."""
    found: dict[tuple[str, int], Any] = {}
    seen: Counter[str] = Counter()
    for step in tree.get("agent", {}).get("workflow", ()):
        found[step["step"], seen[step["step"]]] = step
        seen[step["step"]] += 1
    return found


_Keys: TypeAlias = list[tuple[str, int]]


def _around(waiting: tuple[str, int], old: _Keys, new: _Keys) -> list[tuple[_Keys, _Keys]]:
    """The two lists in parts that belong together: up to the step that waits, and what follows it."""
    if waiting not in old or waiting not in new:
        return [(old, new)]
    i, m = old.index(waiting) + 1, new.index(waiting) + 1
    return [(old[: i - 1], new[: m - 1]), ([waiting], [waiting]), (old[i:], new[m:])]


def _at(tree: _Tree, step: str) -> int:
    """The position of the step; beyond the end where it is gone."""
    names = [name for name, _ in _workflow(tree)]
    return names.index(step) if step in names else len(names)


def _parts(tree: _Tree) -> Iterator[tuple[str, Any]]:
    agent = tree.get("agent", {})
    for key, value in tree.items():
        if key == "vars" and isinstance(value, dict):
            yield from ((f"vars.{name}", declared) for name, declared in value.items())
        elif key != "agent":
            yield key, value
    yield from ((f"agent.{key}", value) for key, value in agent.items() if key not in ("workflow", "tools"))
    for tool in reversed(agent.get("tools") or ()):
        yield f"tool {tool['name']}", tool  # the first one of a name counts, and comes last here


def _users(tree: _Tree, tool: str) -> set[str]:
    """The steps that call this tool, by themselves or through a gate of theirs."""
    tools = {f"tool {one['name']}": one for one in reversed(tree.get("agent", {}).get("tools") or ())}
    found = set()
    for (name, _), step in _workflow(tree).items():
        called: set[str] = set()
        reached = [step.get("tool"), *_executed(step)]
        while reached:
            one = reached.pop()
            if isinstance(one, str) and one not in called:
                called.add(one)
                reached += _executed(tools.get(f"tool {one}"))
        if tool in called:
            found.add(name)
    return found


def _executed(part: Any) -> list[str]:
    return _EXECUTES.findall(canonical(part))


def _change(name: str, before: Any, now: Any) -> StepChange:
    """None stands for a part that is not there."""
    if before is None or now is None:
        state: State = "added" if before is None else "removed"
    else:
        state = "same" if canonical(before) == canonical(now) else "changed"
    return StepChange(name=name, state=state, before=_text(before), now=_text(now))


class _Plain(yaml.CSafeDumper):
    """Writes everything out, what the author named once as well."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(part: Any) -> str:
    if part is None:
        return ""
    text: str = yaml.dump(part, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False)
    return text.removesuffix("...\n").rstrip("\n")
