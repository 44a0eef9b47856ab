"""Names of a spec that lead nowhere, or to another place than they seem to (format 12, 21.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from workflows.spec import rules
from workflows.spec.errors import Path, clipped, dotted, listed
from workflows.spec.notes import Finding, Subject, finding, nearest
from workflows.spec.patterns import ASK_A_PERSON, EXECUTE_TOOL

#: What means to be `execute_tool(NAME)`, whatever is wrong with it.
_NEARLY: Final = re.compile(r"""\s*execute_tool\s*\(\s*(["'`]?)(?P<name>.*?)\1\s*\)\s*;?\s*""", re.DOTALL)
_MOST_READ: Final = 1000
_CALLABLE: Final = re.compile("[A-Za-z0-9_]+")
_FORMS: Final = f"execute_tool(NAME) or {ASK_A_PERSON}"


def repeated_steps(subject: Subject) -> Iterator[Finding]:
    said = (
        ": this one's output takes the place of that one's, and conditions and templates cannot tell them apart; "
        "rename one"
    )
    yield from _repeated("duplicate_step_name", rules.steps(subject.tree), "step", said)


def repeated_tools(subject: Subject) -> Iterator[Finding]:
    said = ", and the first one is the one that is called; rename this one, or remove it"
    yield from _repeated("duplicate_tool_name", rules.tools(subject.tree), "name", said)


def _repeated(code: str, named: Iterable[tuple[Path, Mapping[str, str]]], key: str, said: str) -> Iterator[Finding]:
    """A note at each name that an earlier one has, with what follows from that."""
    first: dict[str, Path] = {}
    for path, one in named:
        name = one[key]
        if name in first:
            yield finding(code, (*path, key), f'{dotted(first[name])} is called "{clipped(name)}" as well{said}')
        first.setdefault(name, path)


def unknown_tools(subject: Subject) -> Iterator[Finding]:
    tools = _tools(subject)
    for path, step in rules.steps(subject.tree):
        if "tool" in step and step["tool"] not in tools:
            yield _unknown_tool((*path, "tool"), step["tool"], tools)
        for at, branch in _branches(path, step):
            called = EXECUTE_TOOL.fullmatch(branch)
            if called and called[1] not in tools:
                yield _unknown_tool(at, called[1], tools)


def _unknown_tool(path: Path, name: str, tools: Mapping[str, Path]) -> Finding:
    def message() -> str:
        guess = nearest(name, tools) or f"; declared are {listed(tools) if tools else 'none'}"
        return f'there is no tool named "{clipped(name)}", so the step will fail{guess}'

    return finding("unknown_tool", path, message)


def branches_of_no_form(subject: Subject) -> Iterator[Finding]:
    """A branch that is no action, and a tool that no branch can name."""
    tools = _tools(subject)
    for path, step in rules.steps(subject.tree):
        for at, branch in _branches(path, step):
            if branch == ASK_A_PERSON or EXECUTE_TOOL.fullmatch(branch):
                continue
            nearly = _NEARLY.fullmatch(branch) if len(branch) < _MOST_READ else None
            name = nearly["name"] if nearly else branch
            if nearly and name in tools and not _CALLABLE.fullmatch(name):
                yield finding(
                    "tool_name_not_callable",
                    at,
                    f'a branch can only name a tool of letters, digits and "_", so "{clipped(name)}" cannot be called '
                    "from one and the step will fail; rename the tool, or call it from a tool step",
                )
            else:
                yield finding("unknown_branch_action", at, partial(_no_form, branch, name, tools))


def _no_form(branch: str, name: str, tools: Mapping[str, Path]) -> str:
    if name in tools or (name != branch and _CALLABLE.fullmatch(name)):
        guess = f"; did you mean execute_tool({clipped(name)})?" if _CALLABLE.fullmatch(name) else ""
    else:
        guess = nearest(branch, (ASK_A_PERSON,))
    return f'"{clipped(branch)}" is no action, so the step fails when it goes there: write {_FORMS}{guess}'


def _tools(subject: Subject) -> dict[str, Path]:
    return {tool["name"]: path for path, tool in rules.tools(subject.tree)}


def _branches(path: Path, step: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if "if" in step:
        yield (*path, "then"), step["then"]
        yield (*path, "else"), step["else"]
