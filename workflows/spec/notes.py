"""What a valid spec's author should know (format 17). At most one note a code, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from workflows.spec import patterns, rules
from workflows.spec.errors import Note, clipped, dotted, listed
from workflows.spec.expression_rules import texts
from workflows.spec.model import Json
from workflows.spec.shapes import Dropped

#: More unknown keys than an author would read.
_MOST_KEYS = 50


def knowledge_base(tree: dict[str, Json]) -> Iterator[Note]:
    if tree["agent"].get("knowledge_base"):
        yield Note(
            code="knowledge_base_not_executed",
            path=("agent", "knowledge_base"),
            message="the sources of knowledge_base are declared but not used by any run",
        )


def legacy_conditions(tree: dict[str, Json]) -> Iterator[Note]:
    found = [(path, step["step"]) for path, step in rules.steps(tree) if "if" in step]
    if found:
        yield Note(
            code="legacy_condition_syntax",
            path=(*found[0][0], "if"),
            message=f"the conditions of {listed((name for _, name in found), most=1000)} have the syntax of 1.0; "
            'it keeps working, and expressions of version "1.1" replace it',
        )


def legacy_placeholders(tree: dict[str, Json]) -> Iterator[Note]:
    found = [
        path
        for tool_path, tool in rules.tools(tree)
        for path, text in texts(tool, tool_path)
        if patterns.LEGACY_PLACEHOLDER.search(text)
    ]
    if found:
        yield Note(
            code="legacy_placeholder_syntax",
            path=found[0],
            message=f"single-brace placeholders in {listed(map(dotted, found), most=1000)}; they keep working, and "
            '{{ expressions }} of version "1.1" replace them',
        )


def not_performed(tree: dict[str, Json]) -> Iterator[Note]:
    """What loads and this version does not do yet: nobody should count on it in silence."""
    found = [(*path, key) for path, tool in rules.tools(tree) for key in ("retry", "pace") if key in tool]
    if found:
        yield Note(
            code="not_performed_yet",
            path=found[0],
            message=f"{listed(map(dotted, found), most=1000)}: read, and not performed by this version: every call is "
            "made once and at once",
        )


def unknown_keys(dropped: list[Dropped]) -> Iterator[Note]:
    """A mistyped `requires_approval` must not pass in silence: nobody would be asked."""
    if dropped:
        yield Note(
            code="unknown_keys",
            path=dropped[0].path,
            message=f"no such key, nothing reads it: {listed(map(_with_guess, dropped[:_MOST_KEYS]), most=_MOST_KEYS)}"
            + (f" and {len(dropped) - _MOST_KEYS} more" if len(dropped) > _MOST_KEYS else ""),
        )


def _with_guess(key: Dropped) -> str:
    name = clipped(str(key.path[-1]))
    near = get_close_matches(name, key.known, n=1, cutoff=0.7)
    return f"{name} (did you mean {near[0]}?)" if near else name
