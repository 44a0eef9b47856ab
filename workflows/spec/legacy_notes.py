"""What a 1.0 spec says and its engine reads in another way, or not at all (engine semantics 7, 9, 23)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from workflows.spec import rules, spans
from workflows.spec.errors import Path, clipped
from workflows.spec.expression_rules import texts
from workflows.spec.model import Json
from workflows.spec.notes import Finding, Subject, finding
from workflows.spec.patterns import CONDITION_10
from workflows.spec.text_notes import TEMPLATES

_ROOTS: Final = ("trigger", "vars")
_NAME: Final = re.compile(r"\s*([A-Za-z0-9_.]+)\s*", re.ASCII)
_DOUBLE: Final = re.compile(r"\{\{\s*([A-Za-z0-9_.]+)\s*\}\}")
_SINGLE: Final = re.compile(r"\{(?<![{$]\{)((?:trigger|vars)\.[A-Za-z0-9_.]+)\}(?!\})")
_COMBINATOR: Final = re.compile(
    r"""(?:\s(?:and|or)\s|&&|\|\|)\s*(?:not\s|!)?\s*\(*\s*
        (?:[A-Za-z0-9_]+\.[A-Za-z0-9_]+\s*(?:$|[)=!<>])|[^\s]+\s*(?:==|!=|>=|<=|>|<))""",
    re.IGNORECASE | re.VERBOSE,
)
_MOST_READ: Final = 1000
_NEEDS_1_1: Final = 'version "1.1" has expressions for that'

# Conditions ---------------------------------------------------------------------------------------------------


def condition_shapes(subject: Subject) -> Iterator[Finding]:
    for path, condition in _conditions(subject):
        if CONDITION_10.fullmatch(condition.strip()) is None:
            yield finding(
                "legacy_condition_shape",
                path,
                f'"{clipped(condition)}" is not of the form STEP.FIELD OP LITERAL, OP one of == != >= <= > <, so the '
                f"step will fail{_why_no_shape(condition)}",
            )


def _why_no_shape(condition: str) -> str:
    if "{{" in condition:
        return "; a condition has no braces: write the step's name and the field alone"
    left = re.split("[=!<>]", condition, maxsplit=1)[0].strip()
    if left.count(".") > 1:
        return f"; a condition reads one field of one step, and {_NEEDS_1_1}"
    if "-" in left:
        return "; a step's name with a hyphen cannot be written here: rename the step"
    if re.search("[^=!<>]=[^=]", condition):
        return "; equality is =="
    return ""


def combinators(subject: Subject) -> Iterator[Finding]:
    for path, condition in _conditions(subject):
        found = CONDITION_10.fullmatch(condition.strip())
        if found is not None and _combines(found[4].strip()[:_MOST_READ]):
            yield finding(
                "legacy_condition_combinator",
                path,
                f'a 1.0 condition is one comparison: everything after "{found[3]}" is a text to compare with, "and" '
                f'and "or" included, so this is hardly what you mean; use two condition steps, or {_NEEDS_1_1}',
            )


def _combines(literal: str) -> bool:
    if len(literal) > 1 and literal[0] in "\"'" and literal.find(literal[0], 1) == len(literal) - 1:
        return False
    return _COMBINATOR.search(literal) is not None


def conditions_without_output(subject: Subject) -> Iterator[Finding]:
    """A condition can only read what a step before it left."""
    before: dict[str, None] = {}
    for path, step in rules.steps(subject.tree):
        found = CONDITION_10.fullmatch(step["if"].strip()) if "if" in step else None
        if found is not None and found[1] not in before:
            yield finding(
                "legacy_condition_no_output",
                (*path, "if"),
                f'the condition reads "{clipped(found[1])}", and no step before it has that name, so the step will '
                f"fail{_what_it_is(found[1])}",
            )
        before[step["step"]] = None


def _what_it_is(name: str) -> str:
    if name in _ROOTS:
        return f'; 1.0 has no {name}: version "1.1" has it'
    return "; a condition reads one field of an earlier step's output"


def unreadable_confidence(subject: Subject) -> Iterator[Finding]:
    """In 1.0 the confidence of a gate is no part of its output (engine semantics 4.3, 23.5)."""
    gates = {step["step"] for _, step in rules.steps(subject.tree) if step.get("confidence_gate")}
    if not gates:
        return
    for path, condition in _conditions(subject):
        found = CONDITION_10.fullmatch(condition.strip())
        if found is not None and found[1] in gates and found[2] == "confidence":
            yield _confidence(path, found[1])
    for path, text, _ in _templated(subject):
        for key in dict.fromkeys(_DOUBLE.findall(text)):
            step, _, field = key.rpartition(".")
            if step in gates and field == "confidence":
                yield _confidence(path, step)


def _confidence(path: Path, step: str) -> Finding:
    return finding(
        "legacy_confidence_unreadable",
        path,
        f'in 1.0 the confidence of the gate "{clipped(step)}" is no part of its output: this reads a field of the '
        "model's result, which is missing unless the model gives one of that name; use "
        'guardrails.confidence_threshold, or version "1.1"',
    )


def _conditions(subject: Subject) -> Iterator[tuple[Path, str]]:
    for path, step in rules.steps(subject.tree):
        if "if" in step:
            yield (*path, "if"), step["if"]


# References ---------------------------------------------------------------------------------------------------


def unresolved_references(subject: Subject) -> Iterator[Finding]:
    """A reference that no step can fill is sent as it is written (engine semantics 9, 23.20)."""
    first: dict[str, int] = {}
    for path, step in rules.steps(subject.tree):
        first.setdefault(step["step"], int(path[-1]))
    for path, text, at in _templated(subject):
        for key in dict.fromkeys((*_DOUBLE.findall(text), *_SINGLE.findall(text))):
            if not _can_resolve(key, first, at):
                yield finding("legacy_reference_unresolved", path, partial(_unresolved, key, first))


def _unresolved(key: str, first: Mapping[str, int]) -> str:
    name = key.partition(".")[0]
    if name in _ROOTS:
        why = f'1.0 has no {name}; version "1.1" has it'
    elif name in first:
        why = f'the step "{clipped(name)}" has not run by then'
    else:
        why = f'no step is called "{clipped(name)}"'
    return f"{clipped(key)} stays in the text as it is written: {why}"


def _can_resolve(key: str, first: Mapping[str, int], at: int) -> bool:
    """Whether it names the input, a step before this one or a field of one; names may hold dots themselves."""
    heads = (key, *(key[:dot] for dot, character in enumerate(key[:_MOST_READ]) if character == "."))
    return key == "input" or any(first.get(head, at) < at for head in heads)


def ignored_expressions(subject: Subject) -> Iterator[Finding]:
    for path, text, _ in _templated(subject):
        # Mostly all that opens is a name, and then nothing has to be read in full.
        if text.count("{{") == len(_DOUBLE.findall(text)):
            continue
        for source in dict.fromkeys(part.source for part in spans.parse(text) if isinstance(part, spans.Span)):
            if not _NAME.fullmatch(source):
                yield finding(
                    "legacy_expression_ignored",
                    path,
                    f"{{{{{clipped(source)}}}}} stays in the text as it is written: 1.0 looks up "
                    f"{{{{ step.field }}}} and computes nothing; {_NEEDS_1_1}",
                )


def _templated(subject: Subject) -> Iterator[tuple[Path, str, int]]:
    """Every text whose references are filled, with the number of steps that can have run by then."""
    steps = list(rules.steps(subject.tree))
    for at, (path, step) in enumerate(steps):
        for key in ("query", "message"):
            if "{" in step.get(key, ""):
                yield (*path, key), step[key], at
    for path, tool in rules.tools(subject.tree):
        for key, value in _templated_parts(tool):
            for place, text in texts(value, (*path, key)):
                if "{" in text:
                    yield place, text, len(steps)


def _templated_parts(tool: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    for key in TEMPLATES[tool["action"]]:
        if key in tool:
            yield key, tool[key]
