"""What a valid spec's author should know (format 17). At most one note a code, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator

from workflows.spec import patterns, rules
from workflows.spec.errors import Note, dotted, listed
from workflows.spec.expression_rules import texts
from workflows.spec.model import Json


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
